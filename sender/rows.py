"""Rows of a stream file: where they are in a block of lines, and whether they can be sent."""

from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from espbench.errors import InputError

SENSOR_COLUMNS = 56
_SENSORS = (1, 2)
_SENSOR_COLUMNS = (SENSOR_COLUMNS, SENSOR_COLUMNS + 1)
_PRODUCTION_COLUMNS = (4,)
_LF, _CR, _TAB = b"\n"[0], b"\r"[0], b"\t"[0]
REMEDY = "correct the file, or make a new one with `espbench datagen`"

Places: TypeAlias = npt.NDArray[np.int64]


def split_rows(block: bytes) -> tuple[Places, Places]:
    """Where the rows of a block of whole lines start and end (without their line ends)."""
    octets = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(octets == _LF)
    if block[-1] != _LF:
        ends = np.append(ends, len(block))
    starts = np.concatenate(([0], ends[:-1] + 1))
    # A carriage return stands before the line's end, or nowhere.
    ends = ends - ((ends > starts) & (octets[ends - 1] == _CR))
    return starts, ends


class RowCheck:
    """Checks a file block by block; `InputError` names the file and the line.

    The first row decides whether a sensor file has 56 columns, as real ones have, or 57.
    """

    def __init__(self, path: Path, stream: int) -> None:
        self._path = path
        self._stream = stream
        self._lines = 0
        self._columns: int | None = None

    @property
    def suffix(self) -> bytes:
        """What every row lacks: the workplace id, in real DEBS files; else nothing."""
        lacks_it = self._stream in _SENSORS and self._columns == SENSOR_COLUMNS
        return b"\t%d" % self._stream if lacks_it else b""

    def block(self, block: bytes) -> tuple[Places, Places]:
        """Check the next block; returns where its rows start and end."""
        self._check_utf8(block)
        starts, ends = split_rows(block)
        octets = np.frombuffer(block, dtype=np.uint8)
        edges = np.append(starts, len(block))
        tabs = np.diff(np.searchsorted(np.flatnonzero(octets == _TAB), edges))
        self._check_columns(tabs)
        if self._stream in _SENSORS and not self.suffix:
            self._check_workplace(octets, ends)
        self._lines += len(starts)
        return starts, ends

    def finish(self) -> None:
        """There must have been rows."""
        if not self._lines:
            raise InputError(f"{self._path} is empty", REMEDY)

    def _check_utf8(self, block: bytes) -> None:
        try:
            block.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self._lines + block.count(b"\n", 0, error.start) + 1
            raise InputError(f"{self._path}, line {line}: not UTF-8", REMEDY) from error

    def _check_columns(self, tabs: Places) -> None:
        allowed = _SENSOR_COLUMNS if self._stream in _SENSORS else _PRODUCTION_COLUMNS
        if self._columns is None:
            found = int(tabs[0]) + 1
            self._columns = found if found in allowed else allowed[0]
        wrong = np.flatnonzero(tabs != self._columns - 1)
        if wrong.size:
            line = self._lines + int(wrong[0])
            raise InputError(
                f"{self._path}, line {line + 1}: {int(tabs[wrong[0]]) + 1} columns, expected "
                f"{' or '.join(map(str, allowed if line == 0 else (self._columns,)))}, "
                "separated by tabs",
                REMEDY,
            )

    def _check_workplace(self, octets: npt.NDArray[np.uint8], ends: Places) -> None:
        right = (octets[ends - 1] == ord(str(self._stream))) & (octets[ends - 2] == _TAB)
        wrong = np.flatnonzero(~right)
        if wrong.size:
            raise InputError(
                f"{self._path}, line {self._lines + int(wrong[0]) + 1}: column "
                f"{SENSOR_COLUMNS + 1} is not {self._stream}, the workplace of stream "
                f"{self._stream}",
                "give each stream its own file: --stream 1=sensor-1.csv --stream 2=sensor-2.csv",
            )
