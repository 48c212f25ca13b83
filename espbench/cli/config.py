"""`espbench config`: the effective configuration."""

import sys

import yaml

from espbench.cli import context, options


def config(
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Print the effective configuration: file, environment and defaults merged, secrets hidden.

    Example: ESPBENCH_LOAD__RATE=5000 espbench config
    """
    settings = context.begin(config, quiet=quiet, verbose=verbose)
    if json:
        context.print_json(settings.public())
    else:
        yaml.safe_dump(settings.public(), sys.stdout, sort_keys=False)
