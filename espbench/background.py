"""Commands in the background: started in a session of their own, waited for, ended.

A small process stays behind each as its parent and writes down how it ended, because a stranger
cannot ask for the exit code of a process. Three files tell of one: the pid file, the log, and
`<pid file>.end`, which exists once the command has ended.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from espbench.errors import EspbenchError, ExitCode, ServiceError
from espbench.paths import make_dir, write_atomically
from espbench.services.process import ProcessRecord, stop_tree

POLL_S = 0.05
START_DEADLINE_S = 30.0
# What the parent needs to write down how the command ended.
NOTE_S = 2.0
STOP_GRACE_S = 30.0


class BackgroundFailedError(EspbenchError):
    """A background command ended badly; carries its own message and exit code."""

    def __init__(self, message: str, code: int, log: Path) -> None:
        super().__init__(message, f"log: {log}")
        self.exit_code = known_code(code)


@dataclass(frozen=True, slots=True)
class Background:
    """One command in the background, known by its files."""

    pid_file: Path
    log: Path

    @property
    def end_file(self) -> Path:
        """Says how it ended, once it has."""
        return self.pid_file.with_name(f"{self.pid_file.name}.end")

    def start(self, arguments: list[str]) -> None:
        """Start `espbench …`; standard output and error go to the log."""
        if self.running():
            raise ServiceError(f"the command of {self.pid_file} is running", "stop it first")
        for file in (self.pid_file, self.end_file):
            make_dir(file.parent)
            file.unlink(missing_ok=True)
        if os.fork() == 0:
            _stay_behind(self, arguments)
        deadline = time.monotonic() + START_DEADLINE_S
        while not (self.pid_file.exists() or self.end_file.exists()):
            if time.monotonic() > deadline:
                raise ServiceError("the background command did not start", f"see {self.log}")
            time.sleep(POLL_S)

    def running(self) -> ProcessRecord | None:
        """The command's process; None where it ended or never began."""
        record = ProcessRecord.read(self.pid_file)
        return record if record and record.process() else None

    def end(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs or where nobody knows."""
        try:
            return int(json.loads(self.end_file.read_text(encoding="utf-8"))["code"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def check(self) -> None:
        """Raise where it has ended with anything but success."""
        if not self.pid_file.exists() or self.running():
            return
        deadline = time.monotonic() + NOTE_S
        while (code := self.end()) is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
        if code != 0:
            code = -signal.SIGKILL if code is None else code
            raise BackgroundFailedError(last_words(self.log, code), code, self.log)

    def wait_for_file(self, file: Path, timeout_s: float) -> None:
        """Return once the file exists; raise where the command ends or the time is over first."""
        deadline = time.monotonic() + timeout_s
        while not file.exists():
            self.check()
            if not self.running() and not file.exists():
                raise ServiceError(f"the command ended before it wrote {file}", f"log: {self.log}")
            if time.monotonic() > deadline:
                raise ServiceError(
                    f"it was not ready within {timeout_s:.0f} s", f"see its log {self.log}"
                )
            time.sleep(POLL_S)

    def wait_for_end(self, timeout_s: float) -> bool:
        """Whether it ended by itself in time; raises where it ended badly."""
        deadline = time.monotonic() + timeout_s
        while self.running():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        self.check()
        return True

    def stop(self) -> bool:
        """End it with all it started; False where it was not running."""
        record = ProcessRecord.read(self.pid_file)
        stopped = record is not None and stop_tree(record, grace_s=STOP_GRACE_S)
        if record is not None:
            # It leads a session of its own, so what it left behind shares its group.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(record.pid, signal.SIGKILL)
        return stopped


def _stay_behind(command: Background, arguments: list[str]) -> None:
    """Be the parent of the command in the background; never returns."""
    code = 1
    try:
        os.setsid()
        log = os.open(command.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        # Whoever started us waits until every copy of its pipes is closed.
        os.closerange(3, 1_024)
        child = subprocess.Popen(
            [sys.executable, "-m", "espbench", *arguments],
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: child.terminate())
        with contextlib.suppress(ServiceError):
            ProcessRecord.of(child.pid).write(command.pid_file)
        code = child.wait()
    finally:
        with contextlib.suppress(OSError):
            write_atomically(command.end_file, json.dumps({"code": code}))
        os._exit(0)


def known_code(code: int) -> ExitCode:
    """The exit code of ours that a command's failure means; a killed one failed as a service."""
    known = {member.value for member in ExitCode}
    return ExitCode(code) if code in known and code else ExitCode.SERVICE


def last_words(log: Path, code: int, said: str = "") -> str:
    """Why a command failed: its own message in what it said or in its log, else how it ended."""
    lines = [*_tail(log), *said.splitlines()]
    own = [line for line in lines if line.startswith("espbench: ")]
    if own:
        return own[-1].removeprefix("espbench: ")
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    last = [line.strip() for line in lines if line.strip()]
    return f"ended with exit code {code}: {last[-1] if last else 'no words'}"


def _tail(log: Path, limit: int = 64 * 1024) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - limit))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
