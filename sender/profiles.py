"""Load profiles: how many records are due by when.

A profile is one small class with one method, `count`. Everything else (when a record is due, how
many a run sends) follows from it in `sender.schedule`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

Nanoseconds: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = npt.NDArray[np.float64]

NS_PER_S = 1_000_000_000


class Profile(Protocol):
    """The contract of a load profile.

    `count(t_ns)` is N(t), the cumulative number of records due by `t_ns` nanoseconds after the
    common start, as real numbers: N(0) = 0, never falling, the same for the same argument every
    time (a seeded profile draws its randomness when it is made). It works on whole arrays.
    """

    @property
    def name(self) -> str:
        """The name by which the profile is asked for."""
        ...

    def count(self, t_ns: Nanoseconds) -> Counts:
        """N(t) for an array of times."""
        ...


@runtime_checkable
class Invertible(Protocol):
    """A profile that can tell due times in closed form, which spares a search.

    `due_ns(ids)` must be what the search finds: the smallest whole nanosecond with N(t) ≥ id.
    """

    def due_ns(self, ids: Nanoseconds) -> Nanoseconds:
        """The due times of an array of ids, in nanoseconds after the start."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same rate all the time: N(t) = rate · t."""

    rate_per_s: float
    name: str = "constant"

    def count(self, t_ns: Nanoseconds) -> Counts:
        """N(t); multiplied before divided, so that whole numbers come out whole."""
        return self.rate_per_s * t_ns.astype(np.float64) / NS_PER_S

    def due_ns(self, ids: Nanoseconds) -> Nanoseconds:
        """The inverse of `count`, rounded up to the nanosecond."""
        return np.ceil(ids.astype(np.float64) * NS_PER_S / self.rate_per_s).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Ramp:
    """A rate that changes evenly over the duration, from one value to another.

    It is called `increasing` or `decreasing`; after the duration the last rate holds.
    """

    first_per_s: float
    last_per_s: float
    duration_s: float

    @property
    def name(self) -> str:
        """Upwards or downwards."""
        return "increasing" if self.last_per_s >= self.first_per_s else "decreasing"

    def count(self, t_ns: Nanoseconds) -> Counts:
        """N(t): the area under the slope."""
        t_s = t_ns.astype(np.float64) / NS_PER_S
        on_slope = np.minimum(t_s, self.duration_s)
        slope = (self.last_per_s - self.first_per_s) / self.duration_s
        rising = self.first_per_s * on_slope + slope * on_slope**2 / 2
        return rising + self.last_per_s * (t_s - on_slope)


@dataclass(frozen=True, slots=True)
class Cosine:
    """A rate that swings around a mean, lowest at the start: mean - amplitude · cos(2πt/period)."""

    mean_per_s: float
    amplitude_per_s: float
    period_s: float
    name: str = "cosine"

    def count(self, t_ns: Nanoseconds) -> Counts:
        """N(t): the integral of the rate, in closed form."""
        t_s = t_ns.astype(np.float64) / NS_PER_S
        turn = 2 * np.pi / self.period_s
        return self.mean_per_s * t_s - self.amplitude_per_s / turn * np.sin(turn * t_s)


class Piecewise:
    """Rates that hold for a while each: `rates_per_s[k]` from `starts_s[k]` to the next start.

    Steps, bursts, random walks and rates from a file are this class with different numbers. The
    first piece starts at 0; the last one never ends.
    """

    def __init__(self, name: str, starts_s: Sequence[float], rates_per_s: Sequence[float]) -> None:
        self.name = name
        self._starts_ns = np.round(np.array(starts_s, dtype=np.float64) * NS_PER_S).astype(np.int64)
        self._rates = np.array(rates_per_s, dtype=np.float64)
        lengths = np.diff(self._starts_ns).astype(np.float64)
        self._before = np.concatenate(([0.0], np.cumsum(self._rates[:-1] * lengths / NS_PER_S)))

    def count(self, t_ns: Nanoseconds) -> Counts:
        """N(t): what the pieces before gave, and the piece's own part."""
        piece = np.searchsorted(self._starts_ns, t_ns, side="right") - 1
        inside = (t_ns - self._starts_ns[piece]).astype(np.float64)
        counts: Counts = self._before[piece] + self._rates[piece] * inside / NS_PER_S
        return counts
