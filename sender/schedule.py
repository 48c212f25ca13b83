"""When each record is due: a load profile cut to a duration.

Records are numbered by their id, from 0. Record i is due at the smallest t with N(t) ≥ i, so the
first record is due at the start itself, and at a constant rate r record i is due at i / r. A run
of duration D sends ⌊N(D)⌋ records, the ids 0 … ⌊N(D)⌋ - 1. Times are whole nanoseconds after the
common start; a `due_ms` names the millisecond in which that moment lies.
"""

import numpy as np

from sender.profiles import NS_PER_S, Counts, Invertible, Nanoseconds, Profile

NS_PER_MS = 1_000_000
# What a profile's few additions and products in floating point may be off; far below a nanosecond
# of any rate.
_ROUNDING = 16 * np.finfo(np.float64).eps


class Schedule:
    """The due times of one stream. Pure: no clock, no state."""

    def __init__(self, profile: Profile, duration_s: float) -> None:
        self.profile = profile
        self.duration_s = duration_s
        self._duration_ns = round(duration_s * NS_PER_S)
        self.total = int(np.floor(self._counts(np.array([self._duration_ns], dtype=np.int64))[0]))

    def due_ns(self, first: int, stop: int) -> Nanoseconds:
        """The due times of the ids `first` … `stop` - 1, never falling.

        An id that the profile does not reach within the duration is due at the duration's end.
        """
        ids = np.arange(first, stop, dtype=np.int64)
        if isinstance(self.profile, Invertible):
            return np.minimum(self.profile.due_ns(ids), self._duration_ns)
        return self._search(ids)

    def span_s(self, records: int) -> float:
        """The time that `records` records take by the schedule: until the next one would be due."""
        return float(self.due_ns(records, records + 1)[0]) / NS_PER_S

    def asked_per_second(self, records: int) -> list[int]:
        """How many of the first `records` records are due in each second after the start."""
        seconds = int(np.ceil(self.span_s(records)))
        edges = np.arange(seconds + 1, dtype=np.int64) * NS_PER_S
        return [int(each) for each in np.diff(np.minimum(self.due_before(edges), records))]

    def due_before(self, edges_ns: Nanoseconds) -> Nanoseconds:
        """How many records are due before each of these moments."""
        # All ids below N(edge), and that includes id 0 from the start on.
        due = np.ceil(self._counts(np.minimum(edges_ns, self._duration_ns)))
        return np.minimum(due, self.total).astype(np.int64)

    def _search(self, ids: Nanoseconds) -> Nanoseconds:
        # Bisection of all ids at once: below[i] is not enough (or 0), enough[i] is.
        below = np.full(len(ids), -1, dtype=np.int64)
        enough = np.full(len(ids), self._duration_ns, dtype=np.int64)
        while np.any(enough - below > 1):
            middle = (below + enough) // 2
            reached = self.profile.count(np.maximum(middle, 0)) >= ids
            enough = np.where(reached, middle, enough)
            below = np.where(reached, below, middle)
        return np.maximum(enough, 0)

    def _counts(self, t_ns: Nanoseconds) -> Counts:
        """N(t), whole where it is meant to be: 0.29/s over 100 s are 29 records, not 28.999…6."""
        counts = self.profile.count(t_ns)
        nearest = np.rint(counts)
        return np.where(np.abs(counts - nearest) <= _ROUNDING * counts, nearest, counts)
