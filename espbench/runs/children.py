"""The commands that a run starts: each a child of its own, watched, its words kept and shown."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from espbench.errors import EspbenchError, ExitCode
from espbench.logs import LOGGER
from espbench.parent import VARIABLE as DIE_WITH_PARENT

_POLL_S = 0.1
_STOP_GRACE_S = 30.0
# Verdicts are answers, not failures of the command that gives them.
_ANSWERS = {ExitCode.DONE, ExitCode.INCORRECT, ExitCode.UNKNOWN, ExitCode.GATE_MISSED}


class StepFailedError(EspbenchError):
    """A step of the run failed; carries the step's own message and exit code."""

    def __init__(self, step: str, message: str, code: int, log: Path) -> None:
        super().__init__(f"{step}: {message}", f"log: {log}")
        known = {member.value for member in ExitCode}
        self.exit_code = ExitCode(code) if code in known and code else ExitCode.SERVICE


@dataclass(slots=True)
class Child:
    """A running `espbench` command."""

    step: str
    process: "subprocess.Popen[str]"
    log: Path
    said: list[str] = field(default_factory=list)
    answer: list[str] = field(default_factory=list)
    readers: list[threading.Thread] = field(default_factory=list)

    def wait(self, watch: Callable[[], None], deadline_s: float | None = None) -> bool:
        """Wait for its end, calling `watch` meanwhile; False where the deadline passed first."""
        deadline = None if deadline_s is None else time.monotonic() + deadline_s
        while self.process.poll() is None:
            if deadline is not None and time.monotonic() > deadline:
                return False
            watch()
            time.sleep(_POLL_S)
        self._finish_reading()
        return True

    def check(self) -> None:
        """Raise where it ended with anything but an answer."""
        code = self.process.poll()
        if code is not None and code not in _ANSWERS:
            self._finish_reading()
            raise StepFailedError(self.step, self._message(code), code, self.log)

    def stop(self) -> None:
        """End it and everything it started."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_STOP_GRACE_S)
        # The child leads a session of its own, so its descendants share its group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._finish_reading()

    def document(self) -> dict[str, Any]:
        """The JSON document that it printed."""
        try:
            parsed: dict[str, Any] = json.loads("".join(self.answer))
        except ValueError as error:
            raise StepFailedError(self.step, "gave no JSON answer", 1, self.log) from error
        return parsed

    def _message(self, code: int) -> str:
        own = [line for line in self.said if line.startswith("espbench: ")]
        if own:
            return own[-1].removeprefix("espbench: ")
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}: {self.said[-1] if self.said else 'no words'}"

    def _finish_reading(self) -> None:
        for reader in self.readers:
            reader.join(5)


def start(
    step: str, arguments: list[str], *, log: Path, environment: dict[str, str], quiet: bool
) -> Child:
    """Start `espbench …`; its words go to the log and, unless quiet, to our standard error."""
    # Without this the child's plain lines would be lost in a buffer if it were killed.
    own = {**environment, DIE_WITH_PARENT: str(os.getpid()), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "espbench", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=own,
        start_new_session=True,
    )
    child = Child(step, process, log)
    for stream, read in ((process.stderr, _relay), (process.stdout, _collect)):
        reader = threading.Thread(target=read, args=(child, stream, quiet), daemon=True)
        reader.start()
        child.readers.append(reader)
    LOGGER.debug("%s: pid %d: espbench %s", step, process.pid, " ".join(arguments))
    return child


def _relay(child: Child, stream: IO[str], quiet: bool) -> None:
    with child.log.open("a", encoding="utf-8") as log:
        for line in stream:
            log.write(line)
            log.flush()
            child.said.append(line.rstrip("\n"))
            if not quiet:
                sys.stderr.write(f"    {line}")


def _collect(child: Child, stream: IO[str], _quiet: bool) -> None:
    child.answer.extend(stream)
