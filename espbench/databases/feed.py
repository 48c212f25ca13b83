"""The production times as a feed: lines of the stream's file, taken in turn, never twice."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from espbench.errors import InputError

# Enough for every step of a search; a file of scale 100 has sixty million lines.
MOST_LINES = 4_000_000
_LONGEST_LINE = 64


class Feed:
    """Lines of `production_times.csv`; `renew` makes them usable again once all were taken."""

    def __init__(self, path: Path, renew: Callable[[], None], most: int = MOST_LINES) -> None:
        with path.open("rb") as file:
            self._text = file.read(most * _LONGEST_LINE)
        ends = np.flatnonzero(np.frombuffer(self._text, dtype=np.uint8) == ord("\n")) + 1
        self._ends: npt.NDArray[np.int64] = np.concatenate(([0], ends[:most]))
        self._renew = renew
        self._taken = 0
        if not len(self):
            raise InputError(f"{path} holds no production times", "make the data again")

    def __len__(self) -> int:
        return len(self._ends) - 1

    def lines(self, first: int, stop: int) -> bytes:
        """Lines `first` to `stop`, without the latter."""
        return self._text[self._ends[first] : self._ends[stop]]

    def take(self, count: int) -> range:
        """The next `count` lines; all are renewed first where fewer are left."""
        if count > len(self):
            raise ValueError(f"{count} lines are asked for, there are {len(self)}")
        if self._taken + count > len(self):
            self.restart()
        taken = range(self._taken, self._taken + count)
        self._taken = taken.stop
        return taken

    def restart(self) -> None:
        """Begin again with the first line."""
        if self._taken:
            self._renew()
            self._taken = 0
