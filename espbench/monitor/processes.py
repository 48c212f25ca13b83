"""The process table, read in one cheap pass.

On Linux straight from `/proc`: one file per process tells parent, CPU time, threads and memory, for
a third of what psutil's objects cost, and this runs every second beside what is measured.
Elsewhere psutil answers, and what it cannot tell is None.
"""

import os
import sys
from dataclasses import dataclass

import psutil

LINUX = sys.platform.startswith("linux")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if LINUX else 1
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if LINUX else 1
# Pid, and the start as the kernel counts it: pids are used again, the pair is not.
Key = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Process:
    """One process as the table shows it.

    `cpu_s` includes `waited_s`, that of children that it has waited for, and of theirs.
    """

    pid: int
    parent: int
    started: float
    name: str
    cpu_s: float
    threads: int
    rss_bytes: int
    waited_s: float = 0.0

    @property
    def key(self) -> Key:
        """What tells it from any other process, earlier or later."""
        return self.pid, self.started


def table() -> dict[int, Process]:
    """All processes by pid. Zombies are among them until someone waits for them."""
    read = _from_proc if LINUX else _from_psutil
    found = (read(pid) for pid in psutil.pids())
    return {process.pid: process for process in found if process}


def _from_proc(pid: int) -> Process | None:
    text = _read(f"/proc/{pid}/stat")
    return parse_stat(text) if text else None


def parse_stat(text: bytes) -> Process:
    """A line of `/proc/<pid>/stat`; the name in brackets may itself hold brackets and spaces."""
    before, _, rest = text.rpartition(b")")
    pid, _, name = before.partition(b" (")
    fields = rest.split()
    return Process(
        pid=int(pid),
        parent=int(fields[1]),
        started=int(fields[19]) / _TICKS_PER_S,
        name=name.decode("utf-8", "replace"),
        # Own time in user and kernel mode, then that of children waited for.
        cpu_s=sum(int(ticks) for ticks in fields[11:15]) / _TICKS_PER_S,
        threads=int(fields[17]),
        rss_bytes=int(fields[21]) * _PAGE_BYTES,
        waited_s=sum(int(ticks) for ticks in fields[13:15]) / _TICKS_PER_S,
    )


def _from_psutil(pid: int) -> Process | None:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            times = process.cpu_times()
            return Process(
                pid=pid,
                parent=process.ppid(),
                started=process.create_time(),
                name=process.name(),
                cpu_s=sum(times[:4]),
                threads=process.num_threads(),
                rss_bytes=process.memory_info().rss,
                waited_s=sum(times[2:4]),
            )
    except psutil.Error:
        return None


def arguments(pid: int) -> tuple[str, ...]:
    """The command line; empty where the process is gone or will not tell."""
    try:
        return tuple(psutil.Process(pid).cmdline())
    except (psutil.Error, OSError):
        return ()


def shared_bytes(pid: int) -> int:
    """Resident memory that other processes may share; 0 where unknown."""
    text = _read(f"/proc/{pid}/statm") if LINUX else None
    return int(text.split()[2]) * _PAGE_BYTES if text else 0


def disk_bytes(pid: int) -> tuple[int, int] | None:
    """Bytes read from and written to disks so far; None where we may not know."""
    try:
        counters = psutil.Process(pid).io_counters() if not LINUX else None
    except (psutil.Error, AttributeError):
        return None
    if counters is not None:
        return counters.read_bytes, counters.write_bytes
    text = _read(f"/proc/{pid}/io")
    if not text:
        return None
    numbers = dict(line.split(b": ") for line in text.splitlines())
    return int(numbers[b"read_bytes"]), int(numbers[b"write_bytes"])


def switches(pid: int) -> dict[int, tuple[int, int]]:
    """Voluntary and involuntary context switches so far, by thread (Linux).

    The process's own status counts its first thread only, which in a JVM does nothing at all.
    """
    found = {}
    try:
        threads = os.listdir(f"/proc/{pid}/task") if LINUX else []  # noqa: PTH208 - a third of the cost
    except OSError:
        return {}
    for thread in threads:
        text = _read(f"/proc/{pid}/task/{thread}/status")
        if text:
            _, _, counts = text.rpartition(b"\nvoluntary_ctxt_switches:")
            words = counts.split()
            if len(words) == 3:
                found[int(thread)] = int(words[0]), int(words[2])
    return found


def _read(path: str) -> bytes | None:
    # Neither pathlib nor buffers: they would cost as much as the reading.
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(descriptor, 8192) or None
    except OSError:
        return None
    finally:
        os.close(descriptor)
