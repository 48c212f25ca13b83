"""Calls into a JVM that may be dying: never waited for longer than told."""

import threading
from collections.abc import Callable
from typing import Any


def bounded(call: Callable[[], Any], seconds: float) -> bool:
    """Call, and wait at most so long; False where it raised or is still at it.

    A call that hangs is left behind in a daemon thread: its caller is about to kill what it
    waits for.
    """
    succeeded = threading.Event()

    def attempt() -> None:
        try:
            call()
        except Exception:  # noqa: BLE001 - whatever a dying JVM answers, it did not work
            return
        succeeded.set()

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    return succeeded.is_set()
