"""Which answers are out of order: the fewest that would have to move to bring all into order."""

from bisect import bisect_left

import numpy as np

from validator.records import Ints


def out_of_order(lane: Ints, sink_offset: Ints, source_offset: Ints) -> Ints:
    """The rows that are out of order, rising.

    Order is kept from one source partition to one sink partition: rows of the same `lane`. Within
    it, by rising sink offset, source offsets must rise; the longest part of it that does is in
    order, and what is left is not. So one record that was moved is one record out of order.
    """
    order = np.lexsort((sink_offset, lane))
    lanes, sources = lane[order], source_offset[order]
    falls = (np.diff(lanes) == 0) & (np.diff(sources) < 0)
    moved = []
    for number in np.unique(lanes[1:][falls]):
        begin, end = np.searchsorted(lanes, [number, number + 1])
        moved.append(order[begin:end][_outside_longest_rise(sources[begin:end])])
    return np.sort(np.concatenate(moved)) if moved else np.zeros(0, dtype=np.int64)


def _outside_longest_rise(numbers: Ints) -> Ints:
    """The places outside a longest rising subsequence."""
    tails: list[int] = []
    tail_places: list[int] = []
    before = np.full(len(numbers), -1, dtype=np.int64)
    for place, number in enumerate(numbers.tolist()):
        length = bisect_left(tails, number)
        if length:
            before[place] = tail_places[length - 1]
        if length == len(tails):
            tails.append(number)
            tail_places.append(place)
        else:
            tails[length] = number
            tail_places[length] = place
    outside = np.ones(len(numbers), dtype=np.bool_)
    place = tail_places[-1] if tail_places else -1
    while place >= 0:
        outside[place] = False
        place = int(before[place])
    return np.flatnonzero(outside)
