"""Columns of very many records in few bytes: neighbours are alike."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from validator.records import Rows

_TYPES = tuple(np.dtype(f"u{size}") for size in (1, 2, 4))
_PART = 1 << 14


@dataclass(slots=True)
class Packed:
    """A column of numbers or truth values that grows part by part.

    Of each part its smallest number is kept, and what the others are above it in as few bytes as
    that needs; nothing more where all are equal. Offsets, ids and times of a batch take two bytes a
    record instead of eight. What is neither integer nor truth value is kept as it is.
    """

    kind: npt.DTypeLike = np.int64
    parts: list[tuple[int, int, npt.NDArray[Any] | None]] = field(default_factory=list)
    count: int = 0

    @classmethod
    def of(cls, numbers: npt.NDArray[Any]) -> "Packed":
        """All of these."""
        packed = cls(numbers.dtype)
        for begin in range(0, len(numbers), _PART):
            packed.add(numbers[begin : begin + _PART])
        return packed

    def __len__(self) -> int:
        return self.count

    def add(self, numbers: npt.NDArray[Any]) -> None:
        """Append a part."""
        if not len(numbers):
            return
        self.count += len(numbers)
        low, high, small = 0, 0, None
        if numbers.dtype.kind in "ib":
            low, high = int(numbers.min()), int(numbers.max())
            if low == high:
                self.parts.append((low, len(numbers), None))
                return
            small = next((kind for kind in _TYPES if high - low <= np.iinfo(kind).max), None)
        if small is None:
            # Copied, so that nothing holds on to the batch that the numbers are from.
            self.parts.append((0, len(numbers), numbers.copy()))
            return
        above = np.subtract(numbers, low, dtype=np.int64).astype(small)
        self.parts.append((low, len(numbers), above))

    def all(self) -> npt.NDArray[Any]:
        """All of them, as an array of its own."""
        found = np.empty(self.count, dtype=self.kind)
        begin = 0
        for part in self.parts:
            _unpack(part, slice(None), found[begin : begin + part[1]])
            begin += part[1]
        return found

    def at(self, rows: Rows) -> npt.NDArray[Any]:
        """Those of some rows; cheap where rows rise."""
        if not len(rows):
            return np.empty(0, dtype=self.kind)
        if (np.diff(rows) < 0).any():
            return self.all()[rows]
        found = np.empty(len(rows), dtype=self.kind)
        ends = np.cumsum([count for _, count, _ in self.parts])
        borders = np.searchsorted(rows, ends)
        begin = 0
        for part, last, border in zip(self.parts, ends.tolist(), borders.tolist(), strict=True):
            if border > begin:
                _unpack(part, rows[begin:border] - (last - part[1]), found[begin:border])
                begin = border
        return found


def _unpack(part: tuple[int, int, Any], which: Any, into: npt.NDArray[Any]) -> None:
    low, _, above = part
    if above is None:
        into[:] = low
    elif low == 0:
        into[:] = above[which]
    else:
        np.add(above[which], low, out=into, dtype=np.int64, casting="unsafe")


class PackedColumns(Mapping[str, Any]):
    """Columns of equal length, packed: each look at one makes the array anew."""

    def __init__(self, packed: Mapping[str, Packed]) -> None:
        self._packed = dict(packed)

    @classmethod
    def like(cls, columns: Mapping[str, npt.NDArray[Any]]) -> "PackedColumns":
        """Empty columns of the same kinds."""
        return cls({name: Packed(column.dtype) for name, column in columns.items()})

    def __getitem__(self, name: str) -> Any:
        return self._packed[name].all()

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)

    def add(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Append a part of every column; columns of another name are left out."""
        for name, packed in self._packed.items():
            packed.add(columns[name])

    def packed(self, name: str) -> Packed:
        """One column as it is held."""
        return self._packed[name]

    def at(self, name: str, rows: Rows) -> Any:
        """One column in some rows; cheap where rows rise."""
        return self._packed[name].at(rows)

    def only(self, keep: npt.NDArray[np.bool_] | None) -> "PackedColumns":
        """The columns with some of their rows; None: with all."""
        if keep is None:
            return self
        return PackedColumns({name: Packed.of(self[name][keep]) for name in self})
