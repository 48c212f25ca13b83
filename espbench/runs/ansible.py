"""Ansible at work: a playbook run by ansible-runner in a thread, its events in a queue."""

import os
import queue
import shlex
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from espbench.config import PREFIX
from espbench.errors import MissingExtra
from espbench.paths import make_dir

_SETTINGS = {"pexpect_timeout": 1}


class Playbook:
    """One call of `ansible-playbook`.

    `private` is a directory for this call alone, removed at its end; what Ansible wrote is kept
    as `log`.
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
        self._private = private
        self._log = log
        words = [str(playbook), *options]
        for key, value in variables.items():
            words += ["-e", f"{key}={shlex.quote(value)}"]
        self._words = words
        self._environment = environment
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ansible", daemon=True)
        self._to_be_killed = False
        self._problem: BaseException | None = None
        self.code: int | None = None

    def start(self) -> None:
        """Start it; it goes on in a thread of its own."""
        self._thread.start()

    def alive(self, wait_s: float = 0.0) -> bool:
        """Whether it still goes on, after waiting so long for its end."""
        self._thread.join(wait_s)
        return self._thread.is_alive()

    def kill(self) -> None:
        """End it at once, without its own cleaning up."""
        self._to_be_killed = True
        self._thread.join(10)

    def events(self) -> Iterator[dict[str, Any]]:
        """The events since the last call."""
        with suppress(queue.Empty):
            while True:
                yield self._events.get_nowait()

    def ended_badly(self) -> str | None:
        """Why it ended without a step that failed; None where it ended well."""
        if self._problem is not None:
            return f"{type(self._problem).__name__}: {self._problem}"
        if self.code == 0:
            return None
        if self.code is None:
            return "ansible-playbook was killed"
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        errors = [line for line in lines if "ERROR" in line] or lines
        return f"ansible-playbook ended with {self.code}: {errors[-1] if errors else 'no words'}"

    def _run(self) -> None:
        try:
            self.code = self._call()
        except BaseException as error:  # noqa: BLE001 - told by `ended_badly`, in another thread
            self._problem = error
        finally:
            shutil.rmtree(self._private, ignore_errors=True)

    def _call(self) -> int | None:
        try:
            import ansible_runner  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra("ansible-runner", "ansible") from error
        make_dir(self._private, mode=0o700)
        runner = ansible_runner.run(
            private_data_dir=str(self._private),
            # Steps run where the user called us, as paths in options are meant.
            project_dir=str(Path.cwd()),
            binary=str(Path(sys.executable).with_name("ansible-playbook")),
            cmdline=shlex.join(self._words),
            ident="run",
            quiet=True,
            settings=_SETTINGS,
            envvars=dict(self._environment),
            suppress_env_files=True,
            event_handler=self._take,
            status_handler=self._forget_environment,
            cancel_callback=lambda: self._to_be_killed,
        )
        with suppress(OSError), self._log.open("a", encoding="utf-8") as log:
            log.write((self._private / "artifacts/run/stdout").read_text(encoding="utf-8"))
        code: int | None = runner.rc
        return code

    def _take(self, event: dict[str, Any]) -> bool:
        self._events.put(event)
        # Not to be written as a file.
        return False

    def _forget_environment(self, _status: dict[str, Any], **_: Any) -> None:
        # ansible-runner writes the whole environment down, where nobody needs it.
        (self._private / "artifacts/run/command").unlink(missing_ok=True)


@contextmanager
def without_settings() -> Iterator[None]:
    """Our environment without its settings: the run's configuration file holds all that counts.

    What is started meanwhile inherits neither them nor the secrets among them.
    """
    saved = {key: value for key, value in os.environ.items() if key.startswith(PREFIX)}
    for key in saved:
        del os.environ[key]
    try:
        yield
    finally:
        os.environ.update(saved)
