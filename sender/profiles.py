"""Load profiles: how many records are due by when.

A profile is one small class with one method, `count`. Everything else (when a record is due, how
many a run sends) follows from it in `sender.schedule`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

Nanoseconds: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = npt.NDArray[np.float64]

NS_PER_S = 1_000_000_000
DEFAULT_SEED = 2021


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


class Cosine:
    """A rate that swings around a mean, lowest at the start: mean - amplitude · cos(2πt/period).

    `noise_per_s` is the standard deviation of what is added to each second's rate, drawn once from
    the seed when the profile is made; a rate never falls below 0. After `duration_s` no noise is
    added any more.
    """

    name = "cosine"

    def __init__(
        self,
        mean_per_s: float,
        amplitude_per_s: float,
        period_s: float,
        noise_per_s: float = 0.0,
        *,
        seed: int = DEFAULT_SEED,
        duration_s: float = 0.0,
    ) -> None:
        self._mean, self._amplitude = mean_per_s, amplitude_per_s
        self._turn = 2 * np.pi / period_s
        seconds = np.arange(math.ceil(duration_s))
        drawn = np.random.default_rng(seed).normal(0.0, noise_per_s, len(seconds))
        # Within a second the noise is constant, so the lowest rate there bounds it from below.
        edges = np.arange(len(seconds) + 1) * float(NS_PER_S)
        plain = np.diff(self._swing(edges.astype(np.int64)))
        lowest = np.minimum(plain, self._lowest(seconds)) if len(seconds) else plain
        noise = np.maximum(drawn, -np.maximum(lowest, 0.0))
        self._noise = Piecewise([*seconds.tolist(), len(seconds)], [*noise.tolist(), 0.0])

    def count(self, t_ns: Nanoseconds) -> Counts:
        """N(t): the integral of the rate, in closed form, and the noise of the seconds so far."""
        return self._swing(t_ns) + self._noise.count(t_ns)

    def _swing(self, t_ns: Nanoseconds) -> Counts:
        t_s = t_ns.astype(np.float64) / NS_PER_S
        swing: Counts = self._mean * t_s - self._amplitude / self._turn * np.sin(self._turn * t_s)
        return swing

    def _lowest(self, seconds: Nanoseconds) -> Counts:
        """The lowest rate inside each second, looked for at many places."""
        places = seconds[:, None] + np.linspace(0.0, 1.0, 101)[None, :]
        rates: Counts = self._mean - self._amplitude * np.cos(self._turn * places)
        lowest: Counts = rates.min(axis=1)
        return lowest


class Piecewise:
    """Rates that hold for a while each: `rates_per_s[k]` from `starts_s[k]` to the next start.

    The first piece starts at 0; the last one never ends. The profiles below are this class with
    different numbers.
    """

    def __init__(self, starts_s: Sequence[float], rates_per_s: Sequence[float]) -> None:
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


class RandomWalk(Piecewise):
    """Every second one step up or down, each as likely, between 0 and twice the first rate."""

    name = "random-walk"

    def __init__(self, rate_per_s: float, step_per_s: float, duration_s: float, seed: int) -> None:
        seconds = max(1, math.ceil(duration_s))
        rates = [rate_per_s]
        for direction in np.random.default_rng(seed).choice((-1.0, 1.0), size=seconds - 1):
            rates.append(min(max(rates[-1] + direction * step_per_s, 0.0), 2 * rate_per_s))
        super().__init__(range(seconds), rates)


class Steps(Piecewise):
    """From a low to a high rate (or down) in so many steps of equal length."""

    name = "steps"

    def __init__(self, low_per_s: float, high_per_s: float, steps: int, duration_s: float) -> None:
        starts = [step * duration_s / steps for step in range(steps)]
        super().__init__(starts, np.linspace(low_per_s, high_per_s, steps).tolist())


class BurstAtStart(Piecewise):
    """A higher rate for the first seconds, then the usual one."""

    name = "burst-at-start"

    def __init__(self, rate_per_s: float, burst_per_s: float, seconds: float) -> None:
        super().__init__([0.0, seconds], [burst_per_s, rate_per_s])


class PeriodicBursts(Piecewise):
    """The usual rate, and a higher one for the last `seconds` of every period."""

    name = "periodic-bursts"

    def __init__(
        self,
        rate_per_s: float,
        burst_per_s: float,
        seconds: float,
        period_s: float,
        duration_s: float,
    ) -> None:
        starts: list[float] = []
        periods = max(1, math.ceil(duration_s / period_s))
        for begin in range(periods):
            starts += [begin * period_s, (begin + 1) * period_s - seconds]
        super().__init__(starts, [rate_per_s, burst_per_s] * periods)


class FromCsv(Piecewise):
    """The rates of a file: each holds from its second on."""

    name = "csv"
