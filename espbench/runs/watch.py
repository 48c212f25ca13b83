"""What must stay alive while a run waits for something else: the servers and the query."""

import contextlib
import time
from dataclasses import dataclass, field

import psutil

from espbench import services
from espbench.background import Background, BackgroundFailedError
from espbench.config import Settings
from espbench.errors import ServiceError
from espbench.parent import marked
from espbench.services.process import ProcessRecord, last_lines
from espbench.services.service import Service

_GRACE_S = 10.0


@dataclass(slots=True)
class Watch:
    """The embedded servers of a run and the query in the background."""

    servers: list[tuple[Service, ProcessRecord]] = field(default_factory=list)
    query: Background | None = None

    def take_servers(self, settings: Settings, names: list[str]) -> None:
        """Watch these embedded services, which are running now."""
        self.servers = []
        for service in services.select(settings, names) if names else []:
            record = service.record()
            if record is None:
                raise ServiceError(f"{service.name} ended at once", f"see its log {service.log}")
            self.servers.append((service, record))

    def check(self, where: str) -> None:
        """Raise where a server or the query has died; `where` says during what."""
        for service, record in self.servers:
            if record.process() is None:
                last = " / ".join(last_lines(service.log, 1))
                raise ServiceError(
                    f"{service.name} (pid {record.pid}) ended during {where}"
                    + (f"; its last words: {last}" if last else ""),
                    f"see its log {service.log}",
                )
        if self.query is not None:
            try:
                self.query.check()
            except BackgroundFailedError as error:
                error.cause = f"query: {error.cause}"
                raise


def end_commands(mark: str, asked: set[int]) -> None:
    """Ask every espbench command with this mark to end, each once; `asked` remembers them."""
    for process in marked(mark):
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if process.pid not in asked and words[1:3] == ["-m", "espbench"]:
                asked.add(process.pid)
                process.terminate()


def end_everything(mark: str) -> None:
    """End all processes with this mark, whatever they are."""
    left = marked(mark)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    deadline = time.monotonic() + _GRACE_S
    while left and time.monotonic() < deadline:
        _, left = psutil.wait_procs(left, timeout=0.2)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=2)
