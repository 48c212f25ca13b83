"""Where a step of a run writes what it says: into a log of its own, its last words also outside."""

import os
import sys
from contextlib import suppress
from pathlib import Path

VARIABLE = "ESPBENCH_STEP_LOG"


class LastWords:
    """Standard error as it was before it went to the log; None where it was left alone."""

    outside: int | None = None


def write_to_log() -> None:
    """Send standard error to the file that the environment names, appending."""
    name = os.environ.get(VARIABLE)
    if not name:
        return
    # Not for the commands that this one starts.
    del os.environ[VARIABLE]
    try:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        log = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        sys.exit(f"espbench: cannot write the log {name}: {error.strerror}")
    sys.stderr.flush()
    LastWords.outside = os.dup(2)
    os.dup2(log, 2)
    os.close(log)


def say_outside(text: str) -> None:
    """Say it also where standard error went before, so that whoever started the step reads it."""
    if LastWords.outside is not None:
        with suppress(OSError):
            os.write(LastWords.outside, text.encode("utf-8", "replace"))
