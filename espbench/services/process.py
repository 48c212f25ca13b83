"""Child processes that outlive the command that started them: pid file, start, stop.

A pid alone proves nothing, because numbers are used again; the pid file holds the process's start
as well, so that a stale file is never mistaken for a running server.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from espbench.config import INTERNAL_VARIABLES as _OF_A_RUN
from espbench.errors import ServiceError
from espbench.paths import write_atomically

# Children of this very process: they must be reaped, or they would stay as zombies.
_spawned: "dict[int, subprocess.Popen[bytes]]" = {}


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """Which process it was: its pid, and its start as `started_at` tells it."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> "ProcessRecord":
        """The record of a process that exists now."""
        started = started_at(pid)
        if started is None:
            raise ServiceError(f"process {pid} ended at once", "see its log")
        return cls(pid, started)

    @classmethod
    def read(cls, path: Path) -> "ProcessRecord | None":
        """What a pid file says; None where there is none or it is unreadable (torn)."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return cls(int(content["pid"]), str(content["started"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, path: Path) -> None:
        """Write the pid file at once or not at all."""
        write_atomically(path, json.dumps(asdict(self)))

    def process(self) -> psutil.Process | None:
        """The running process, or None where it ended or the pid went to another one."""
        _reap(self.pid)
        if started_at(self.pid) != self.started:
            return None
        try:
            process = psutil.Process(self.pid)
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if alive else None


def started_at(pid: int) -> str | None:
    """When a process started, as a text that stays the same while it lives; None where it is gone.

    On Linux the clock ticks since boot, and which boot: a wall time would move with every
    correction of the clock, and with it a living server would seem to be another process.
    """
    if not sys.platform.startswith("linux"):
        try:
            return f"{psutil.Process(pid).create_time():.0f}"
        except psutil.NoSuchProcess:
            return None
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field, the name in brackets, may hold anything; the start is field 22.
    return f"{boot}:{status.rpartition(')')[2].split()[19]}"


def spawn(
    command: list[str], *, log: Path, environment: Mapping[str, str], directory: Path
) -> "subprocess.Popen[bytes]":
    """Start a program in a session of its own, its output appended to `log`."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A server belongs to no run: it stays for the next one unless it is stopped.
            env={key: value for key, value in environment.items() if key not in _OF_A_RUN},
            cwd=directory,
            start_new_session=True,
        )
    _spawned[child.pid] = child
    return child


def _reap(pid: int) -> None:
    child = _spawned.get(pid)
    if child is not None and child.poll() is not None:
        del _spawned[pid]


def stop_tree(
    record: ProcessRecord, first_signal: signal.Signals = signal.SIGTERM, grace_s: float = 20.0
) -> bool:
    """End a process and its descendants; False where it was not running.

    The process gets `first_signal` and `grace_s` seconds; whatever is left then is killed.
    """
    process = record.process()
    if process is None:
        return False
    family = [process, *_descendants(process)]
    _signal(process, first_signal)
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and any(_alive(member) for member in family):
        time.sleep(0.05)
        if not _alive(process):
            # Children of a server that is gone have nothing left to finish.
            deadline = min(deadline, time.monotonic() + 2.0)
    for member in family:
        if _alive(member):
            _signal(member, signal.SIGKILL)
    psutil.wait_procs(family, timeout=5)
    _reap(record.pid)
    return True


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def last_lines(path: Path, count: int = 5, limit: int = 64 * 1024) -> list[str]:
    """The last non-empty lines of a log, for an error message."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-count:]
