"""The broker under watch: Spark itself would wait for a dead one for ever."""

import threading
import time
from collections.abc import Callable
from typing import Self

from espbench.errors import EspbenchError, ServiceError

PATIENCE_S = 30.0
INTERVAL_S = 5.0


class BrokerWatch:
    """Asks the broker every few seconds, in a thread of its own; used as a context manager.

    `failure` is set once it has not answered for `patience_s`.
    """

    def __init__(
        self,
        ask: Callable[[], object],
        *,
        patience_s: float = PATIENCE_S,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._ask = ask
        self._patience_s = patience_s
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.failure: ServiceError | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _watch(self) -> None:
        last_answer = time.monotonic()
        while not self._ended.wait(self._interval_s):
            try:
                self._ask()
                last_answer = time.monotonic()
            except EspbenchError as error:
                silent_s = time.monotonic() - last_answer
                if silent_s >= self._patience_s:
                    self.failure = ServiceError(
                        f"{error.cause} (for {silent_s:.0f} s)", error.remedy
                    )
                    return
