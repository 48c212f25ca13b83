"""Comparing many values held in Arrow chunks, a slice at a time, so that little is copied."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from validator.records import Bools, Ints

SLICE = 1 << 16


def take(values: pa.ChunkedArray, rows: Ints) -> Any:
    """The values of some rows as one Arrow array.

    Rows that lie close together are cut out first: taking from an array of many chunks costs as
    much as the whole array.
    """
    if not len(rows):
        return pa.array([], type=values.type)
    low, high = int(rows.min()), int(rows.max()) + 1
    near = flat(values.slice(low, high - low)) if high - low <= 4 * len(rows) + SLICE else None
    if near is not None:
        return near.take(pa.array(rows - low))
    return flat(values.take(pa.array(rows)))


def flat(values: Any) -> Any:
    """A chunked array as one array."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    if values.num_chunks == 1:
        return values.chunk(0)
    if values.num_chunks == 0:
        return pa.array([], type=values.type)
    return pa.concat_arrays(values.chunks)


def equal(one: pa.ChunkedArray, rows: Ints, other: pa.ChunkedArray, other_rows: Ints) -> Bools:
    """For each pair of rows: is the one value the other? Null is equal to null alone."""
    found = np.zeros(len(rows), dtype=np.bool_)
    for begin in range(0, len(rows), SLICE):
        part = slice(begin, begin + SLICE)
        left, right = take(one, rows[part]), take(other, other_rows[part])
        same = pc.fill_null(pc.equal(left, right), fill_value=False)
        if left.null_count and right.null_count:
            same = pc.or_(same, pc.and_(left.is_null(), right.is_null()))
        found[part] = same.to_numpy(zero_copy_only=False)
    return found


def value(values: pa.ChunkedArray, row: int) -> bytes | None:
    """One value."""
    found: bytes | None = values[int(row)].as_py()
    return found
