"""Ansible at work: a playbook in a process of its own, its events in a queue."""

import json
import os
import queue
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from espbench.config import PREFIX
from espbench.errors import MissingExtra
from espbench.paths import make_dir
from espbench.runs import ansible_process

_LAST_EVENTS_S = 5.0


class Playbook:
    """One call of `ansible-playbook`.

    `private` is a directory for this call alone, removed at its end; what Ansible wrote is kept
    as `log`. Of our own environment the settings are left out, and with them the secrets: the
    run's configuration file holds all that counts.
    """

    def __init__(
        self,
        playbook: Path,
        *,
        private: Path,
        log: Path,
        variables: Mapping[str, str],
        options: list[str],
        environment: Mapping[str, str],
    ) -> None:
        if find_spec("ansible_runner") is None:
            raise MissingExtra("ansible-runner", "ansible")
        self._private = private
        self._log = log
        words = [str(playbook), *options]
        for key, value in variables.items():
            words += ["-e", f"{key}={shlex.quote(value)}"]
        self._order = {
            "private": str(private),
            "binary": str(Path(sys.executable).with_name("ansible-playbook")),
            "cmdline": shlex.join(words),
            "log": str(log),
        }
        own = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
        self._environment = own | dict(environment)
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._code: int | None = None

    def start(self) -> None:
        """Start it, in a session of its own: what ends us from a terminal must not end it."""
        make_dir(self._private, mode=0o700)
        with self._log.open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", ansible_process.__name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env=self._environment,
                start_new_session=True,
            )
        self._process = process
        if process.stdin and process.stdout:
            self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
            self._reader.start()
            with suppress(BrokenPipeError):
                json.dump(self._order, process.stdin)
                process.stdin.close()

    def alive(self, wait_s: float = 0.0) -> bool:
        """Whether it still goes on, after waiting so long for its end."""
        if self._process is None or self._reader is None:
            return False
        # Not by joining the thread: an interrupted join takes it for ended.
        try:
            self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return True
        self._reader.join(_LAST_EVENTS_S)
        if self._process.stdout:
            self._process.stdout.close()
        shutil.rmtree(self._private, ignore_errors=True)
        return False

    def kill(self) -> None:
        """End it at once; what it had started is not ended with it."""
        if self._process is not None:
            self._process.kill()

    def events(self) -> Iterator[dict[str, Any]]:
        """The events since the last call."""
        with suppress(queue.Empty):
            while True:
                yield self._events.get_nowait()

    def killed(self) -> bool:
        """Whether it ended without telling how."""
        return self._code is None

    def ended_badly(self) -> str | None:
        """Why it ended without a step that failed; None where it ended well."""
        if self._code == 0:
            return None
        if self.killed():
            return "its process was killed"
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line for line in lines if "ERROR" in line] or lines
        return f"ansible-playbook ended with {self._code}: {errors[-1] if errors else 'no words'}"

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            event = json.loads(line)
            if ansible_process.END in event:
                self._code = event[ansible_process.END]
            else:
                self._events.put(event)
