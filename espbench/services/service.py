"""The contract of an embedded service, and what all of them have in common."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from espbench.config import Settings
from espbench.errors import MachineError, ServiceError
from espbench.logs import LOGGER
from espbench.paths import StateDir, locked, make_dir, write_atomically
from espbench.services.process import (
    ProcessRecord,
    last_lines,
    spawn,
    stop_tree,
)

HOST = "127.0.0.1"
_PORT_TRIES = 3
_LEAST_FREE_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """What `espbench status` shows of one service."""

    name: str
    state: str
    pid: int | None
    address: str | None
    data: str
    log: str
    settings: dict[str, str]


class PortTakenError(ServiceError):
    """Another program took the port between our choice and the server's start."""


class Service(ABC):
    """One embedded server. A subclass says how it is prepared, started, asked and described.

    `prepare` makes the data directory once; `command` gives the argument list for the given
    ports; `ask` talks to the server and raises while it does not answer; `endpoint` is what
    others need to reach it (never a secret). The base class keeps pid file, log and lock, chooses
    free ports, waits for readiness, and stops it.
    """

    name: ClassVar[str]
    port_count: ClassVar[int] = 1
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    start_deadline_s: ClassVar[float] = 90.0

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.host = str(settings.listen_address)
        self.home = StateDir.of(settings).service(self.name)
        self.data = self.home / "data"
        self.log = self.home / f"{self.name}.log"
        self.pid_file = self.home / f"{self.name}.pid"
        self.endpoint_file = self.home / "endpoint.json"

    def fetch(self) -> None:  # noqa: B027 - most come with their wheel
        """Fetch what the server is made of, where that does not come with a wheel."""

    @abstractmethod
    def prepare(self) -> None:
        """Make what the server needs before its first start; does nothing the second time."""

    @abstractmethod
    def command(self, ports: list[int]) -> list[str]:
        """Write the server's settings for these ports and give the argument list."""

    @abstractmethod
    def ask(self, endpoint: dict[str, Any]) -> dict[str, str]:
        """Talk to the server; returns the settings worth showing, raises while not ready."""

    @abstractmethod
    def endpoint(self, ports: list[int]) -> dict[str, Any]:
        """What others need to reach the server."""

    @abstractmethod
    def address(self, endpoint: dict[str, Any]) -> str:
        """The endpoint as a person writes it."""

    def environment(self) -> Mapping[str, str]:
        """The server's environment variables."""
        return os.environ

    def fixed_port(self) -> int:
        """The port that the configuration demands, 0 for any free one."""
        return 0

    def start(self) -> bool:
        """Start the server and wait until it answers; False where it was running already."""
        make_dir(self.home)
        self._check_disk()
        with locked(self.home / "lock"):
            if self._running():
                return False
            self._forget()
            self.prepare()
            for attempt in range(1, _PORT_TRIES + 1):
                try:
                    self._start_once()
                    return True
                except PortTakenError:
                    if self.fixed_port() or attempt == _PORT_TRIES:
                        raise
        return True

    def stop(self) -> bool:
        """Stop the server; False where it was not running. A stale pid file is cleared away."""
        if not self.home.exists():
            return False
        with locked(self.home / "lock"):
            record = ProcessRecord.read(self.pid_file)
            stopped = record is not None and stop_tree(record, self.stop_signal)
            self._forget()
        return stopped

    def record(self) -> ProcessRecord | None:
        """The running server's process, as recorded; None where it is not running."""
        record = ProcessRecord.read(self.pid_file)
        return record if record and record.process() else None

    def status(self) -> ServiceStatus:
        """Ask the server itself: running, not answering, died, stopped."""
        record = ProcessRecord.read(self.pid_file)
        endpoint = self._read_endpoint()
        state, settings = "stopped", {}
        if record is not None and record.process() is None:
            state = "died"
        elif record is not None:
            try:
                settings = self.ask(endpoint or {})
                state = "running"
            except Exception as error:  # noqa: BLE001 - any failure to answer is the finding
                LOGGER.debug("%s does not answer: %s", self.name, error)
                state = "not answering"
        running = state in {"running", "not answering"}
        return ServiceStatus(
            name=self.name,
            state=state,
            pid=record.pid if record and running else None,
            address=self.address(endpoint) if endpoint and running else None,
            data=str(self.data),
            log=str(self.log),
            settings=settings,
        )

    def _start_once(self) -> None:
        ports = self.choose_ports()
        log_start = self.log.stat().st_size if self.log.exists() else 0
        try:
            child = spawn(
                self.command(ports),
                log=self.log,
                environment=self.environment(),
                directory=self.home,
            )
        except OSError as error:
            raise ServiceError(
                f"{self.name} cannot be started: {error.strerror}", f"see {self.home}"
            ) from error
        try:
            ProcessRecord.of(child.pid).write(self.pid_file)
            self._wait_until_ready(child, self.endpoint(ports), log_start)
            write_atomically(self.endpoint_file, json.dumps(self.endpoint(ports)))
        except BaseException:
            # The server leads a group of its own; its descendants end with it.
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            self._forget()
            raise

    def _wait_until_ready(
        self, child: "subprocess.Popen[bytes]", endpoint: dict[str, Any], log_start: int
    ) -> None:
        deadline = time.monotonic() + self.start_deadline_s
        problem = "no answer"
        while time.monotonic() < deadline:
            if child.poll() is not None:
                raise self._explain_death(child.returncode, log_start)
            try:
                self.ask(endpoint)
            except Exception as error:  # noqa: BLE001 - clients raise many kinds until it is up
                problem = " ".join(str(error).split())
                time.sleep(0.1)
            else:
                return
        raise ServiceError(
            f"{self.name} did not answer within {self.start_deadline_s:.0f} s: {problem}",
            f"see its log {self.log}",
        )

    def _explain_death(self, code: int, log_start: int) -> ServiceError:
        text = self._log_since(log_start)
        if os.strerror(errno.EADDRINUSE) in text:
            return PortTakenError(
                f"{self.name} cannot start: its port is taken by another program",
                "choose another port or leave it free (0)",
            )
        if os.strerror(errno.ENOSPC) in text:
            return ServiceError(f"{self.name} cannot start: the disk is full", "free some space")
        if os.strerror(errno.EACCES) in text:
            return ServiceError(
                f"{self.name} cannot start: a permission is missing in {self.home}",
                f"see its log {self.log}",
            )
        last = " / ".join(last_lines(self.log, 2)) or "nothing in its log"
        return ServiceError(
            f"{self.name} ended at once (status {code}): {last}", f"see its log {self.log}"
        )

    def _log_since(self, start: int) -> str:
        try:
            with self.log.open("rb") as file:
                file.seek(start)
                return file.read(1_000_000).decode("utf-8", "replace")
        except OSError:
            return ""

    def _running(self) -> bool:
        """Running and answering; one that runs but does not answer is ended, to be replaced."""
        record = self.record()
        endpoint = self._read_endpoint()
        if record is None:
            return False
        try:
            self.ask(endpoint or {})
        except Exception:  # noqa: BLE001 - any failure to answer is the finding
            LOGGER.info("%s (pid %d) does not answer; starting it anew", self.name, record.pid)
            stop_tree(record, self.stop_signal, grace_s=5)
            return False
        return True

    def choose_ports(self) -> list[int]:
        """Ports for this start, the configured one first; raises where that is taken."""
        fixed = self.fixed_port()
        ports = free_ports(self.port_count, self.host)
        if fixed:
            if not port_is_free(fixed, self.host):
                raise PortTakenError(
                    f"{self.name} cannot start: port {fixed} of {self.host} is taken",
                    "end the program that uses it, or choose another port (0: any free one)",
                )
            ports[0] = fixed
        return ports

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self.home).free
        if free < _LEAST_FREE_BYTES:
            raise MachineError(
                f"only {free // 2**20} MiB are free in {self.home}",
                f"free some space: {_LEAST_FREE_BYTES // 2**20} MiB are needed to start",
            )

    def _read_endpoint(self) -> dict[str, Any] | None:
        try:
            content: dict[str, Any] = json.loads(self.endpoint_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return content

    def _forget(self) -> None:
        self.pid_file.unlink(missing_ok=True)
        self.endpoint_file.unlink(missing_ok=True)


def free_ports(count: int, host: str = HOST) -> list[int]:
    """Ports of this machine's address that are free now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            try:
                one.bind((host, 0))
            except OSError as error:
                raise MachineError(
                    f"no server can listen on {host}: {error.strerror}",
                    "choose an address of this machine (listen_address)",
                ) from error
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def port_is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
