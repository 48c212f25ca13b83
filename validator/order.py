"""Which answers are out of order: the fewest that would have to move to bring all into order."""

from bisect import bisect_left

import numpy as np

from validator.records import Ints
from validator.topics import order_of


def out_of_order(lane: Ints, sink_offset: Ints, source_offset: Ints) -> Ints:
    """The rows that are out of order, rising.

    Order is kept from one source partition to one sink partition: rows of the same `lane`. Within
    it, by rising sink offset, source offsets must rise; the longest part of it that does is in
    order, and what is left is not. So one record that was moved is one record out of order.
    """
    order = order_of(lane, sink_offset)
    lanes, sources = (lane, source_offset) if order is None else (lane[order], source_offset[order])
    falls = (lanes[1:] == lanes[:-1]) & (sources[1:] < sources[:-1])
    moved = []
    for number in np.unique(lanes[1:][falls]):
        begin, end = np.searchsorted(lanes, [number, number + 1])
        places = begin + _outside_longest_rise_by_parts(sources[begin:end])
        moved.append(places if order is None else order[places])
    return np.sort(np.concatenate(moved)) if moved else np.zeros(0, dtype=np.int64)


def _outside_longest_rise_by_parts(numbers: Ints) -> Ints:
    """The places outside a longest rising subsequence.

    Where all numbers before a place are smaller than all behind it, each side has its own.
    """
    highest = np.maximum.accumulate(numbers)
    lowest = np.minimum.accumulate(numbers[::-1])[::-1]
    ends = np.append(np.flatnonzero(highest[:-1] < lowest[1:]) + 1, len(numbers))
    begins = np.append(0, ends[:-1])
    several = ends - begins > 1
    return np.concatenate(
        [
            begin + _outside_longest_rise(numbers[begin:end])
            for begin, end in zip(begins[several].tolist(), ends[several].tolist(), strict=True)
        ]
    )


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
