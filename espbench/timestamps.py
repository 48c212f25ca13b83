"""The hidden clock, in one place: wall time in UTC, and run ids made of it."""

import secrets
import time
from datetime import UTC, datetime


def now_ms() -> int:
    """Epoch milliseconds of this machine's clock."""
    return time.time_ns() // 1_000_000


def utc_now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


def new_run_id(now: datetime | None = None) -> str:
    """A run id that sorts by time; the suffix keeps runs of one second apart."""
    moment = now or utc_now()
    return f"{moment:%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
