"""What a command says while it works: log lines and progress, always on standard error."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LOGGER = logging.getLogger("espbench")
PLAIN_INTERVAL_S = 5.0

stderr = Console(stderr=True)
stdout = Console()


class _CurrentStderr(logging.Handler):
    """Writes to whatever standard error is now, so that redirection works at any time."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")
        sys.stderr.flush()


def set_up(*, quiet: bool = False, verbose: bool = False) -> None:
    """Log lines to standard error; `quiet` leaves warnings only, `verbose` adds details."""
    handler = _CurrentStderr()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    LOGGER.handlers[:] = [handler]
    LOGGER.propagate = False
    LOGGER.setLevel(logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO)


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int], Any]]:
    """Show how far long work has come; yields a function to be called with the number done.

    A moving bar on a terminal, else a plain line every few seconds; nothing when quiet.
    """
    if not LOGGER.isEnabledFor(logging.INFO):
        yield lambda _done: None
        return
    if stderr.is_terminal:
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=stderr, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)
        return
    last_said = time.monotonic()

    def say(done: int) -> None:
        nonlocal last_said
        if time.monotonic() - last_said >= PLAIN_INTERVAL_S:
            last_said = time.monotonic()
            of_total = f" of {total:,}" if total else ""
            LOGGER.info("%s: %s%s", what, f"{done:,}", of_total)

    yield say
