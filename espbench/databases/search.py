"""The highest rate that a database sustains: a small search, separate from what it tries.

A rate is doubled until it fails, or halved until it holds; then the gap is halved (on a logarithmic
scale) a few times. A rate fails when it fails twice, so that one checkpoint of the server does not
decide. A step is sustained by the benchmark's own measure: the least-squares slope of the latency
stays below 50 ms a second, and the last record is committed at most a second after it was due.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from espbench.databases.replay import Replayed

SLOPE_LIMIT_MS_PER_S = 50.0
DRAIN_LIMIT_S = 1.0
REFINEMENTS = 3
LEAST_RATE = 10.0


@dataclass(slots=True)
class Found:
    """The highest sustained and the lowest failing rate; None where there was none.

    `limited` says that the bound, not the database, ended the search.
    """

    sustained: float | None = None
    failed: float | None = None
    limited: bool = False
    tried: list[tuple[float, bool]] = field(default_factory=list)


def is_sustained(outcome: Replayed) -> bool:
    """Whether the database kept up in this step."""
    if outcome.gave_up or outcome.written < len(outcome.lines):
        return False
    latency, due = outcome.commit_latency_ms(), outcome.due_s()
    if latency[-1] > DRAIN_LIMIT_S * 1_000:
        return False
    return slope(due, latency) < SLOPE_LIMIT_MS_PER_S


def slope(x: "np.typing.NDArray[np.float64]", y: "np.typing.NDArray[np.float64]") -> float:
    """The least-squares slope; 0 where all x are the same."""
    centred = x - x.mean()
    spread = float(centred @ centred)
    return float(centred @ (y - y.mean())) / spread if spread else 0.0


def search(start: float, most: float, holds: Callable[[float], bool]) -> Found:
    """Search between `LEAST_RATE` and `most`, beginning at `start`; `holds` tries a rate."""
    found = Found()

    def sustains(rate: float) -> bool:
        held = holds(rate) or holds(rate)
        found.tried.append((rate, held))
        if held:
            found.sustained = max(rate, found.sustained or 0.0)
        else:
            found.failed = min(rate, found.failed or math.inf)
        return held

    rate = min(start, most)
    if sustains(rate):
        while rate < most and sustains(rate := min(2 * rate, most)):
            pass
        found.limited = found.failed is None
    else:
        while rate / 2 >= LEAST_RATE and not sustains(rate := rate / 2):
            pass
    for _ in range(REFINEMENTS):
        if found.sustained is None or found.failed is None:
            break
        sustains(math.sqrt(found.sustained * found.failed))
    return found
