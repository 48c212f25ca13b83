"""`espbench status`: what the embedded services are doing."""

import sys
from dataclasses import asdict

from espbench.cli import context, options
from espbench.cli.up import Names
from espbench.errors import ExitCode


def status(
    names: Names = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Show each embedded service: state, pid, address, data directory, log.

    Leaves with 3 where one died or does not answer. Example: espbench status --json
    """
    from espbench import services

    settings = context.begin(config, quiet=quiet, verbose=verbose)
    found = [service.status() for service in services.present(settings, names)]
    if json:
        context.print_json({"services": [asdict(one) for one in found]})
    else:
        for one in found:
            where = f"  {one.address} (pid {one.pid})" if one.pid else ""
            sys.stdout.write(f"{one.name:<14}{one.state}{where}\n")
            sys.stdout.write(f"{'':<14}data {one.data}\n{'':<14}log  {one.log}\n")
    if any(one.state in {"died", "not answering"} for one in found):
        context.finish(ExitCode.SERVICE)
