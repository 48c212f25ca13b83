"""What a run will take, said before it begins."""

from espbench.config import Settings
from espbench.names import Query

# Measured on two cores: services, Spark's start, drain, capture and validation around the sending.
OVERHEAD_S = 40.0
ROW_BYTES = 220
# A record is stored by the broker as input and as output, and again in the capture.
COPIES = 3


def estimate(settings: Settings, queries: tuple[Query, ...]) -> tuple[float, float]:
    """Seconds and bytes of disk for these queries, without the first set-up of the data."""
    seconds = sum(settings.load.duration + OVERHEAD_S for _ in queries)
    streams = sum(len(query.streams) for query in queries)
    size = streams * settings.load.rate * settings.load.duration * ROW_BYTES * COPIES
    return seconds, size
