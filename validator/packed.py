"""Whole numbers of very many records in few bytes: neighbours are alike."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

_TYPES = tuple(np.dtype(f"u{size}") for size in (1, 2, 4))
_PART = 1 << 14


@dataclass(slots=True)
class Packed:
    """A column of integers or truth values that grows part by part.

    Of each part its smallest number is kept, and what the others are above it in as few bytes as
    that needs; nothing more where all are equal. Offsets, ids and times of a batch take two bytes a
    record instead of eight.
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
        low, high = int(numbers.min()), int(numbers.max())
        self.count += len(numbers)
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
        for low, count, above in self.parts:
            here = found[begin : begin + count]
            if above is None:
                here[:] = low
            else:
                np.add(above, low, out=here, dtype=np.int64, casting="unsafe")
            begin += count
        return found
