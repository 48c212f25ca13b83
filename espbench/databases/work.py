"""What every profile is asked to do."""

from dataclasses import asdict, dataclass
from typing import Any


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
