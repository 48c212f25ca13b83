"""`espbench down`: stop the embedded services."""

from espbench.cli import context, options
from espbench.cli.up import Names
from espbench.logs import LOGGER


def down(
    names: Names = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Stop the embedded services cleanly; their data stays for the next start.

    Example: espbench down
    """
    from espbench import services

    settings = context.begin(config, quiet=quiet, verbose=verbose)
    stopped = {}
    for service in services.present(settings, names):
        stopped[service.name] = service.stop()
        LOGGER.info(
            "%s %s", service.name, "stopped" if stopped[service.name] else "was not running"
        )
    if json:
        context.print_json({"stopped": stopped})
