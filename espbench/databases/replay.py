"""Production times written at a rate, in micro-batches, as query 5 writes them, without Spark.

Record i is due at i/rate seconds. Every `interval_s` all records that are due go to the database in
one batch; where the database is late, the next batch follows at once and is larger. Where the
data end before the records do, the schedule stands still until they are made usable again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from espbench.databases.feed import Feed
from sender.clock import Clock

Floats = npt.NDArray[np.float64]
_LEAD_NS = 20_000_000


class Session(Protocol):
    """What stamps and commits; `queries.stamping.StampingSession` is one."""

    @property
    def update_s(self) -> float:
        """What the last call's update took."""
        ...

    @property
    def commit_s(self) -> float:
        """What the last call's commit took."""
        ...

    def stamp(self, lines: bytes) -> int:
        """Stamp and commit; how many lines are of no row."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How the records come: rate, time between batches, and the lag at which to give up."""

    rate: float
    interval_s: float
    give_up_s: float | None = None
    # Lines in one transaction; None: all that are due.
    at_most: int | None = None


@dataclass(slots=True)
class Replayed:
    """What came of it. `lines` were asked for; batches are (first, stop, seconds…).

    `rounds` is how often the data were used; what came between two of them counts in no time.
    """

    lines: range
    rate: float
    start_ns: int
    gave_up: bool = False
    unknown: int = 0
    rounds: int = 1
    batches: list[tuple[int, int, int, float, float]] = field(default_factory=list)

    @property
    def written(self) -> int:
        """How many records were committed."""
        return self.batches[-1][1] - self.lines.start if self.batches else 0

    def due_s(self) -> Floats:
        """When each written record was due, in seconds from the start."""
        return np.arange(self.written, dtype=np.float64) / self.rate

    def committed_s(self) -> Floats:
        """When each written record was known to be committed, in seconds from the start."""
        counts = [stop - first for first, stop, *_ in self.batches]
        ends = [(end_ns - self.start_ns) / 1e9 for _first, _stop, end_ns, *_ in self.batches]
        return np.repeat(np.array(ends, dtype=np.float64), counts)

    def commit_latency_ms(self) -> Floats:
        """From due to known to be committed, per record."""
        return (self.committed_s() - self.due_s()) * 1_000

    def update_ms(self) -> Floats:
        """How long each batch's update took."""
        return np.array([update for *_, update, _commit in self.batches]) * 1_000

    def commit_ms(self) -> Floats:
        """How long each batch's commit took."""
        return np.array([commit for *_, commit in self.batches]) * 1_000


def replay(
    session: Session,
    feed: Feed,
    lines: range,
    pace: Pace,
    clock: Clock,
    check: Callable[[], None] = lambda: None,
) -> Replayed:
    """Write these lines; `check` is called between batches and may raise."""
    interval_ns = round(pace.interval_s * 1e9)
    paused_ns = 0
    start_ns = clock.now_ns() + _LEAD_NS
    outcome = Replayed(lines, pace.rate, start_ns)
    done, tick_ns = 0, start_ns
    border = feed.border(lines.start)
    while done < len(lines):
        now_ns = clock.now_ns() - paused_ns
        if now_ns < tick_ns:
            clock.sleep_ns(tick_ns - now_ns)
            continue
        check()
        due = min(len(lines), int((now_ns - start_ns) * pace.rate / 1e9) + 1)
        stop = due if pace.at_most is None else min(due, done + pace.at_most)
        stop = min(stop, border - lines.start)
        if stop > done:
            first = lines.start + done
            outcome.unknown += session.stamp(feed.lines(first, lines.start + stop))
            end_ns = clock.now_ns() - paused_ns
            timing = end_ns, session.update_s, session.commit_s
            outcome.batches.append((first, lines.start + stop, *timing))
            done = stop
            lag_s = (end_ns - start_ns) / 1e9 - (done - 1) / pace.rate
            if pace.give_up_s is not None and lag_s > pace.give_up_s:
                outcome.gave_up = done < len(lines)
                break
        if lines.start + done == border and done < len(lines):
            begun_ns = clock.now_ns()
            feed.renew()
            outcome.rounds += 1
            paused_ns += clock.now_ns() - begun_ns
            border = feed.border(border)
        if done >= due:
            tick_ns = max(tick_ns + interval_ns, clock.now_ns() - paused_ns)
    return outcome
