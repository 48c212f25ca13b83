"""`espbench up`: start the embedded services."""

from dataclasses import asdict
from typing import Annotated

import typer

from espbench.cli import context, options
from espbench.logs import LOGGER

Names = Annotated[
    list[str] | None,
    typer.Argument(help="Services: kafka, postgresql (both by default), mariadb."),
]


def up(
    names: Names = None,
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
    for service in services.select(settings, names):
        fresh = service.start()
        status = service.status()
        word = "started" if fresh else "was running already"
        LOGGER.info("%s %s: %s (pid %s)", service.name, word, status.address, status.pid)
        shown = ", ".join(f"{key}={value}" for key, value in status.settings.items())
        LOGGER.info("  settings: %s", shown)
        LOGGER.info("  data: %s  log: %s", status.data, status.log)
        started.append({**asdict(status), "started": fresh})
    if json:
        context.print_json({"services": started})
