"""The sender's clock: wall time, because the broker's stamps are wall time too."""

import time
from typing import Protocol


class Clock(Protocol):
    """What the sender needs of time; tests move a clock of their own."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...

    def sleep_ns(self, duration_ns: int) -> None:
        """Wait about that long; may return early."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return time.time_ns()

    def sleep_ns(self, duration_ns: int) -> None:
        """Wait; the kernel wakes us some 60 µs late."""
        time.sleep(duration_ns / 1e9)
