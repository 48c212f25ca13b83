"""`espbench up`: start the embedded services."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from espbench.cli import context, options
from espbench.errors import Interrupted
from espbench.logs import LOGGER
from espbench.paths import make_dir, write_atomically

if TYPE_CHECKING:
    from espbench.services.service import Service, ServiceStatus

Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Services: kafka, postgresql (both by default), mariadb, spark-master, spark-worker."
    ),
]
StartedFile = Annotated[
    Path | None,
    typer.Option(
        "--started-file",
        help="A file that `up` fills with the names of the services that it starts, each before "
        "its start, and `down` stops exactly these.",
    ),
]


def up(
    names: Names = None,
    started_file: StartedFile = None,
    fetch_only: Annotated[
        bool,
        typer.Option("--fetch-only", help="Fetch what they are made of; start nothing."),
    ] = False,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Start the embedded services on free ports of 127.0.0.1 and wait until they answer.

    Example: espbench up kafka
    """
    from espbench import services

    settings = context.begin(config, quiet=quiet, verbose=verbose)
    started = []
    with _stopped_if_interrupted() as ours:
        for service in services.select(settings, names):
            if fetch_only:
                service.fetch()
                continue
            if started_file and service.record() is None:
                note(started_file, service.name)
            fresh = service.start()
            if fresh:
                ours.append(service)
            started.append(asdict(_told(service, fresh=fresh)) | {"started": fresh})
    if json:
        context.print_json({"services": started})


@contextmanager
def _stopped_if_interrupted() -> Iterator[list["Service"]]:
    """Stop the listed services, the last one first, where the work with them is interrupted."""
    ours: list[Service] = []
    try:
        yield ours
    except (KeyboardInterrupt, Interrupted):
        for service in reversed(ours):
            service.stop()
            LOGGER.info("%s stopped", service.name)
        raise


def _told(service: "Service", *, fresh: bool) -> "ServiceStatus":
    status = service.status()
    word = "started" if fresh else "was running already"
    LOGGER.info("%s %s: %s (pid %s)", service.name, word, status.address, status.pid)
    shown = ", ".join(f"{key}={value}" for key, value in status.settings.items())
    LOGGER.info("  settings: %s", shown)
    LOGGER.info("  data: %s  log: %s", status.data, status.log)
    return status


def note(file: Path, name: str) -> None:
    """Add a service to those that were started."""
    make_dir(file.parent)
    write_atomically(file, "\n".join(dict.fromkeys([*noted(file), name])) + "\n")


def noted(file: Path) -> list[str]:
    """The services in such a file; none where it does not exist."""
    return file.read_text(encoding="utf-8").split() if file.exists() else []
