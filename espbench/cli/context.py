"""What every command does first (settings, logging) and last (one JSON document, an exit code)."""

import json
import sys
from pathlib import Path
from typing import Any

from espbench import logs
from espbench.config import Settings, holds_password, load_settings
from espbench.errors import ExitCode, UsageError


def begin(
    config: Path | None = None,
    *,
    quiet: bool = False,
    verbose: bool = False,
    options: dict[str, Any] | None = None,
) -> Settings:
    """Set up logging and read the configuration; `options` by dotted path, None = not given."""
    logs.set_up(quiet=quiet, verbose=verbose)
    given = options or {}
    settings = load_settings(config, given)
    url = given.get("database.url")
    if url and holds_password(url):
        raise UsageError(
            "the database URL of --db holds a password, which other users of this machine can see",
            "put it into ESPBENCH_DATABASE__PASSWORD or a file named by database.password_file",
        )
    return settings


def print_json(document: Any) -> None:
    """Print the one JSON document of a command on standard output."""
    # Whole or not at all.
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def finish(code: ExitCode) -> None:
    """Leave the command with this exit code."""
    sys.exit(int(code))
