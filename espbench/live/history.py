"""What was seen of one query so far: growing series, and the figures of now.

Times are epoch milliseconds; charts count seconds from the sender's start.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from espbench.live.broker import Seen
from espbench.live.files import Batch
from espbench.names import Query
from espbench.reports.timeseries import Usage, usage_of

# What a rate is taken over: a look is too short where answers come in batches.
RATE_S = 5.0
# An hour at one look a second; beyond it the oldest half is thinned.
MOST_POINTS = 7_200


@dataclass(slots=True)
class Series:
    """Points in time; thinned where they are very many."""

    time_ms: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, time_ms: float, value: float) -> None:
        """Append a point."""
        self.time_ms.append(time_ms)
        self.values.append(value)
        if len(self.values) > MOST_POINTS:
            half = len(self.values) // 2
            self.time_ms[:half] = self.time_ms[:half:2]
            self.values[:half] = self.values[:half:2]

    def last(self) -> float | None:
        """The newest value."""
        return self.values[-1] if self.values else None

    def rate(self, over_s: float = RATE_S) -> float | None:
        """Growth per second over the last seconds, of a series that counts."""
        if len(self.values) < 2:
            return None
        times = np.array(self.time_ms)
        begin = int(np.searchsorted(times, times[-1] - over_s * 1_000))
        begin = min(begin, len(times) - 2)
        grown = self.values[-1] - self.values[begin]
        return grown / (self.time_ms[-1] - self.time_ms[begin]) * 1_000


@dataclass(slots=True)
class History:
    """One query: everything that was seen of it."""

    query: Query
    start_ms: float | None = None
    sent: dict[int, Series] = field(default_factory=dict)
    rates: dict[str, Series] = field(default_factory=dict)
    answers: Series = field(default_factory=Series)
    lag: Series = field(default_factory=Series)
    latency: Series = field(default_factory=Series)
    batches: Series = field(default_factory=Series)
    usage: list[Usage] = field(default_factory=list)
    usage_begin_ms: float = 0.0
    seen_ms: float | None = None
    _told: int = 0
    _before: dict[str, int] = field(default_factory=dict)

    def take_batches(self, batches: Sequence[Batch]) -> None:
        """Take what Spark told since."""
        for batch in batches:
            self._told += batch.rows
            self.batches.add(batch.end_ms, batch.took_ms)

    def take_topics(self, seen: Seen) -> None:
        """Take a look at the topics."""
        self.seen_ms = seen.time_ms
        self.start_ms = self.start_ms or seen.start_ms
        for stream, count in seen.sent.items():
            series = self.sent.setdefault(stream, Series())
            series.add(seen.time_ms, count)
            self._note_rate(f"stream {stream} sent", series, seen.time_ms)
        if seen.answers is not None:
            self.answers.add(seen.time_ms, seen.answers)
            self._note_rate("answers", self.answers, seen.time_ms)
        for topic, offset in seen.answered_before.items():
            self._before[topic] = max(offset, self._before.get(topic, 0))
        for stamp_ms, latency_ms in sorted(seen.samples):
            self.latency.add(stamp_ms, latency_ms)
        if any(seen.sent.values()):
            self.lag.add(seen.time_ms, max(0, self.sent_count() - self.answered_count()))

    def take_usage(self, table: pa.Table) -> None:
        """Take the monitor's samples, all so far."""
        if len(table):
            self.usage_begin_ms = float(table["time_ms"][0].as_py())
            self.usage = usage_of(table, 0.0)

    def sent_count(self) -> int:
        """Records sent so far, of all streams."""
        return int(sum(series.last() or 0 for series in self.sent.values()))

    def answered_count(self) -> int:
        """Records that are answered for, at least: the query tells late, its answers at once."""
        return max(self._told, sum(self._before.values()))

    def latency_ms(self) -> dict[str, Any]:
        """Figures of the drawn answers; a percentile that they cannot carry is None."""
        values = np.array(self.latency.values)
        count = len(values)
        if not count:
            return {"n": 0, "p50": None, "p90": None, "max": None}
        p50, p90 = np.percentile(values, (50, 90))
        return {
            "n": count,
            "p50": round(float(p50), 1) if count >= 2 else None,
            "p90": round(float(p90), 1) if count >= 10 else None,
            "max": round(float(values.max()), 1),
        }

    def _note_rate(self, name: str, series: Series, time_ms: float) -> None:
        rate = series.rate()
        if rate is not None:
            self.rates.setdefault(name, Series()).add(time_ms, rate)
