"""Alignment of two sequences where order is the only identity."""

from collections.abc import Callable

import numpy as np

from validator.records import Bools, Ints

# Beyond this, far more outputs than windows came, and the fewest differences explain nothing.
MAX_CELLS = 50_000_000


def align(
    expected: int,
    actual: int,
    equal: Callable[[Ints, Ints], Bools],
    *,
    free_end: Bools | None = None,
) -> Ints:
    """Pairs (expected, actual), rising in both, with the fewest differences.

    An unpaired element of either side costs as much as a pair that is not equal, so that one loss
    is one missing element and not a shift of all that follow. With `free_end` the last expected
    element is not judged: it may be absent, or be any of the actual elements that `free_end` marks.
    """
    if not expected or not actual:
        return np.zeros((0, 2), dtype=np.int64)
    if expected * actual > MAX_CELLS:
        return _in_passing(expected, actual, equal)
    everyone = np.arange(actual)
    cost = np.zeros((expected + 1, actual + 1), dtype=np.int32)
    cost[0] = np.arange(actual + 1)
    unequal = np.zeros((expected, actual), dtype=np.bool_)
    for row in range(expected):
        judged = free_end is None or row < expected - 1
        here = np.full(actual, row, dtype=np.int64)
        unequal[row] = ~equal(here, everyone)
        if free_end is not None and not judged:
            unequal[row] &= ~free_end
        best = np.minimum(cost[row, :-1] + unequal[row], cost[row, 1:] + judged)
        first = cost[row, 0] + judged
        # Leaving out actual elements costs one each: a running minimum along the row.
        chain = np.concatenate([[first], best]) - np.arange(actual + 1)
        cost[row + 1] = np.minimum.accumulate(chain) + np.arange(actual + 1)
    pairs = []
    row, column = expected, actual
    while row and column:
        judged = free_end is None or row < expected
        if cost[row, column] == cost[row - 1, column - 1] + unequal[row - 1, column - 1]:
            pairs.append((row - 1, column - 1))
            row, column = row - 1, column - 1
        elif cost[row, column] == cost[row - 1, column] + judged:
            row -= 1
        else:
            column -= 1
    return np.array(pairs[::-1], dtype=np.int64).reshape(-1, 2)


def _in_passing(expected: int, actual: int, equal: Callable[[Ints, Ints], Bools]) -> Ints:
    """Each expected element with the first equal one after its predecessor's."""
    pairs = []
    begin = 0
    for row in range(expected):
        rest = np.arange(begin, actual)
        hits = np.flatnonzero(equal(np.full(len(rest), row, dtype=np.int64), rest))
        if len(hits):
            pairs.append((row, begin + int(hits[0])))
            begin += int(hits[0]) + 1
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
