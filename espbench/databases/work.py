"""What every profile is asked to do."""

from dataclasses import asdict, dataclass
from typing import Any

# Measured on two cores, PostgreSQL: a server and its load by scale factor, the steps of a search,
# Spark around a query; and what data set and server hold at most.
_LOAD_S, _STEPS, _QUERY_S = 8.0, 14, 45.0
_BYTES = 600_000_000


@dataclass(frozen=True, slots=True)
class Work:
    """The same for all profiles; seconds, and records per second. `step_s` 0: no search."""

    rate: float
    duration_s: float
    batch_s: float = 0.1
    step_s: float = 3.0
    queries: bool = False

    def document(self) -> dict[str, Any]:
        """The work as plain data."""
        return asdict(self)

    def estimate(self, profiles: int, scale: int) -> tuple[float, float]:
        """Seconds for so many profiles, and bytes of disk while one of them is at work."""
        queries_s = 2 * (_QUERY_S + self.duration_s) if self.queries else 0.0
        search_s = _STEPS * (self.step_s + 1) if self.step_s else 0.0
        each_s = _LOAD_S * scale + self.duration_s + search_s + queries_s
        return profiles * each_s, scale * _BYTES
