"""Load profiles: how many records are due by when.

A profile is one small class with one method, `count`. Everything else (when a record is due, how
many a run sends) follows from it in `sender.schedule`.
"""

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
