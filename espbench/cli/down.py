"""`espbench down`: stop the embedded services."""

from espbench.cli import context, options
from espbench.cli.up import Names, StartedFile, noted
from espbench.logs import LOGGER


def down(
    names: Names = None,
    started_file: StartedFile = None,
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
    if started_file:
        names = noted(started_file)
    for service in services.present(settings, names) if names or not started_file else []:
        stopped[service.name] = service.stop()
        LOGGER.info(
            "%s %s", service.name, "stopped" if stopped[service.name] else "was not running"
        )
    if started_file:
        started_file.unlink(missing_ok=True)
    if json:
        context.print_json({"stopped": stopped})
