"""Ctrl-C and SIGTERM while sending: noted, not thrown.

An exception out of a signal could strike between handing records over and counting them; a flag
that the loop looks at keeps the account exact. A second signal stops at once.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from espbench.errors import Interrupted


@contextmanager
def noted_signals() -> Iterator[Callable[[], bool]]:
    """Yields a function that tells whether a stop was asked for; handlers are put back after."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def note(_signal: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise Interrupted("stopped twice: the report is not complete")
        asked.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
