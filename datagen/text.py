r"""Columns to text: tab separated, `\N` for null, LF, no header, no quoting.

Everything works on whole columns in Arrow; a row is never touched by Python.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.integer[Any]]
Booleans = npt.NDArray[np.bool_]

NULL = r"\N"
LETTERS = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", dtype=np.uint8
)
DIGITS = np.frombuffer(b"0123456789", dtype=np.uint8)


def integers(values: Integers) -> pa.Array:
    """Integers in decimal."""
    return pc.cast(pa.array(values), pa.string())


def small(values: Integers) -> pa.Array:
    """Integers of 0..9,999 in decimal: a lookup, four times as fast as a conversion."""
    return _numbers(0).take(pa.array(values))


def padded(values: Integers, width: int) -> pa.Array:
    """Integers of 0..9,999 with leading zeros up to `width` (at most 4) digits."""
    return _numbers(width).take(pa.array(values))


def hundredths(values: Integers) -> pa.Array:
    """Hundredths as a number with two decimals; non-negative."""
    return pc.binary_join_element_wise(integers(values // 100), padded(values % 100, 2), ".")


def timestamps(microseconds: Integers) -> pa.Array:
    """Microseconds since the epoch as `2021-01-01 00:00:00.000000`."""
    return pc.cast(pa.array(microseconds).cast(pa.timestamp("us")), pa.string())


def where(condition: Booleans, values: pa.Array) -> pa.Array:
    """The values where the condition holds, null elsewhere."""
    return pc.if_else(pa.array(condition), values, pa.scalar(None, pa.string()))


def strings(characters: npt.NDArray[np.uint8], lengths: Integers) -> pa.Array:
    """ASCII characters, laid end to end, cut into strings of these lengths."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.StringArray.from_buffers(
        len(lengths), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(characters))
    )


def random_strings(random: np.random.Generator, rows: int, shortest: int, longest: int) -> pa.Array:
    """TPC-C's a-strings: alphanumeric, of random length from `shortest` to `longest`."""
    lengths = random.integers(shortest, longest + 1, rows)
    return strings(random_characters(random, int(lengths.sum()), LETTERS), lengths)


def random_characters(
    random: np.random.Generator, count: int, alphabet: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """So many characters of an alphabet, each equally likely."""
    return alphabet[random.integers(0, len(alphabet), count, dtype=np.uint8)]


def lines(columns: Sequence[pa.Array | str]) -> bytes:
    """The rows of these columns as they stand in a file; a `str` is the same in every row."""
    joined = pc.binary_join_element_wise(
        *columns, "\t", null_handling="replace", null_replacement=NULL
    )
    ended = pc.binary_join_element_wise(joined, "", "\n")
    offsets = np.frombuffer(ended.buffers()[1], dtype=np.int32)
    first, last = offsets[ended.offset], offsets[ended.offset + len(ended)]
    return bytes(memoryview(ended.buffers()[2])[first:last])


@cache
def _numbers(width: int) -> pa.Array:
    return pa.array([f"{number:0{width}d}" if width else str(number) for number in range(10_000)])
