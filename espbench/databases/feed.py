"""The production times as a feed: lines of the stream's file, in rounds; in a round never twice."""

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
        """Lines `first` to `stop`, without the latter, of one round."""
        begun = first // len(self) * len(self)
        return self._text[self._ends[first - begun] : self._ends[stop - begun]]

    def border(self, line: int) -> int:
        """The first line of the round after this line's: none may be written before `renew`."""
        return (line // len(self) + 1) * len(self)

    def renew(self) -> None:
        """Make all lines usable again: a round begins."""
        self._renew()

    def take(self, count: int) -> range:
        """The next `count` lines, of one round where they fit into one.

        More lines than there are go on in further rounds; whoever writes them renews between them.
        """
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
