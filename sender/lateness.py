"""How late records were: a histogram of fixed size, so that hours of sending need no more memory.

Bins grow by 0.5 % and keep the highest value they saw, so a percentile is a value that occurred,
at most 0.5 % (or 5 ns) above the exact one; the maximum is exact.
"""

import numpy as np
import numpy.typing as npt

_GROWTH = np.log(1.005)
_BINS = 5_000  # up to e^25 µs, many hours
_PERCENTILES = (50.0, 90.0, 99.0)
# Small additions are kept until there are so many: counting has a price per call.
_PENDING = 1_024


class LatenessHistogram:
    """Counts of lateness; negative values count as 0 in the percentiles."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, dtype=np.int64)
        self._highest_ns = np.zeros(_BINS, dtype=np.int64)
        self._max_ns: int | None = None
        self._pending: list[npt.NDArray[np.int64]] = []

    def add(self, lateness_ns: npt.NDArray[np.int64]) -> None:
        """Count an array of values in nanoseconds."""
        self._pending.append(lateness_ns)
        if len(self._pending) >= _PENDING or len(lateness_ns) >= _PENDING:
            self._count()

    def _count(self) -> None:
        if not self._pending:
            return
        lateness_ns = np.concatenate(self._pending)
        self._pending.clear()
        if not len(lateness_ns):
            return
        values = np.maximum(lateness_ns, 0)
        bins = np.minimum((np.log1p(values / 1e3) / _GROWTH).astype(np.int64), _BINS - 1)
        self._counts += np.bincount(bins, minlength=_BINS)
        np.maximum.at(self._highest_ns, bins, values)
        highest = int(lateness_ns.max())
        self._max_ns = highest if self._max_ns is None else max(self._max_ns, highest)

    def merge(self, other: "LatenessHistogram") -> None:
        """Add what another histogram counted."""
        self._count()
        other._count()  # noqa: SLF001 - one of us
        self._counts += other._counts  # noqa: SLF001
        np.maximum(self._highest_ns, other._highest_ns, out=self._highest_ns)  # noqa: SLF001
        highest = [each for each in (self._max_ns, other._max_ns) if each is not None]  # noqa: SLF001
        self._max_ns = max(highest, default=None)

    @property
    def n(self) -> int:
        """How many values were counted."""
        self._count()
        return int(self._counts.sum())

    def percentile_ms(self, percent: float) -> float | None:
        """The value that `percent` of all values do not exceed, in milliseconds."""
        self._count()
        if self._max_ns is None:
            return None
        cumulative = np.cumsum(self._counts)
        bin_ = int(np.searchsorted(cumulative, percent / 100 * cumulative[-1]))
        return round(int(self._highest_ns[bin_]) / 1e6, 3)

    def summary_ms(self) -> dict[str, float | int | None]:
        """The report's form: percentiles, maximum and the number of values behind them."""
        summary: dict[str, float | int | None] = {
            f"p{percent:.0f}": self.percentile_ms(percent) for percent in _PERCENTILES
        }
        summary["max"] = None if self._max_ns is None else round(self._max_ns / 1e6, 3)
        summary["n"] = self.n
        return summary
