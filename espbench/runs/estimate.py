"""What a run will take, said before it begins."""

from collections.abc import Iterable

from espbench.config import Settings
from espbench.names import Query

# Measured on two cores: services, Spark's start, drain, capture and validation around the sending.
OVERHEAD_S = 40.0
ROW_BYTES = 220
# A record is stored by the broker as input and as output, and again in the capture.
COPIES = 3


def estimate(settings: Settings, queries: tuple[Query, ...]) -> tuple[float, float]:
    """Seconds and bytes of disk for these queries, without the first set-up of the data."""
    each = settings.rehearsal_s + settings.load.duration + OVERHEAD_S
    seconds = each * len(queries)
    streams = sum(len(query.streams) for query in queries)
    size = streams * settings.load.rate * settings.load.duration * ROW_BYTES * COPIES
    return seconds, size


def estimate_all(cells: Iterable[tuple[Settings, Query, float]]) -> tuple[float, float]:
    """Seconds and bytes of disk for runs of one query each, at their own rates."""
    seconds = size = 0.0
    for settings, query, rate in cells:
        load = settings.load.model_copy(update={"rate": rate})
        one = estimate(settings.model_copy(update={"load": load}), (query,))
        seconds, size = seconds + one[0], size + one[1]
    return seconds, size
