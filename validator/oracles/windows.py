"""The windows of query 1, the outputs as numbers, and which output answers which window."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from validator.alignment import align
from validator.outputs import Outputs
from validator.records import Bools, Ints
from validator.streams import Columns, Stream
from validator.topics import Topic, order_of

WINDOW_MS = 1_000
# Three decimals are off by half of the last one at most; as binary numbers a little more.
RELATIVE, ABSOLUTE = 1e-9, 0.0005 + 1e-9
NUMBERS = ("readable", "average", "minimum", "maximum", "count")
EXACT = ("minimum", "maximum", "count")
NOBODY = -1
# In place of a key: there is none, or it is not the start of a window.
KEYLESS, NO_WINDOW = -1, -2
Floats = npt.NDArray[np.float64]
# Four decimal numbers, and nothing that Python alone would take for one.
_NUMBER = rb"[+-]?[0-9]{1,300}(\.[0-9]{0,300})?([eE][+-]?[0-9]{1,3})?"
_VALUE = re.compile(rb",".join([_NUMBER] * 4))


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows that have input, rising; the last of them is not judged."""

    start: Ints
    average: Floats
    minimum: Ints
    maximum: Ints
    count: Ints
    last_row: Ints

    def __len__(self) -> int:
        return len(self.start)

    def shown(self, row: int) -> str:
        """The expected value."""
        return f"{self.average[row]:.3f},{self.minimum[row]},{self.maximum[row]},{self.count[row]}"


def windows(stream: Stream) -> Windows:
    """Aggregate the well-formed records by window."""
    rows = np.flatnonzero(stream["well_formed"])
    stamps = stream.topic.places.timestamp_ms.at(rows)
    order = order_of(stamps, stream.topic.places.offset.at(rows))
    if order is not None:
        rows, stamps = rows[order], stamps[order]
    mf01 = stream.at("mf01", rows)
    number = stamps // WINDOW_MS
    begins = np.flatnonzero(np.diff(number, prepend=number[:1] - 1))
    if not len(begins):
        ints = np.zeros(0, dtype=np.int64)
        return Windows(ints, ints.astype(np.float64), ints, ints, ints, ints)
    count = np.diff(np.append(begins, len(rows)))
    return Windows(
        start=number[begins] * WINDOW_MS,
        # In two halves: ten values of 18 digits overflow one sum. Each half is exact as a double.
        average=(
            np.add.reduceat(mf01 >> 32, begins) * 2.0**32
            + np.add.reduceat(mf01 & 0xFFFFFFFF, begins)
        )
        / count,
        minimum=np.minimum.reduceat(mf01, begins),
        maximum=np.maximum.reduceat(mf01, begins),
        count=count,
        last_row=rows[begins + count - 1],
    )


def read_output(keys: pa.Array, values: pa.Array) -> Columns:
    """`avg,min,max,count` as numbers, `readable` where it is that; `start` as the key has it."""
    found = [_numbers(one) for one in values.to_pylist()]
    readable = np.array([one is not None for one in found], dtype=np.bool_)
    table = np.array([one or (0.0, 0.0, 0.0, 0.0) for one in found], dtype=np.float64)
    table = table.reshape(-1, 4)
    return {
        "readable": readable,
        "average": table[:, 0],
        "minimum": table[:, 1],
        "maximum": table[:, 2],
        "count": table[:, 3],
        "start": np.array([_key(one) for one in keys.to_pylist()], dtype=np.int64),
    }


def _numbers(one: bytes | None) -> tuple[float, ...] | None:
    if one is None or not _VALUE.fullmatch(one):
        return None
    numbers = tuple(float(part) for part in one.split(b","))
    return numbers if np.isfinite(numbers).all() else None


def said_by(outputs: Outputs, rows: Ints) -> Columns:
    """The numbers of some outputs."""
    return {name: outputs.columns.at(name, rows) for name in NUMBERS}


def right(found: Windows, window: Ints, said: Columns) -> Bools:
    """For pairs of a window and the numbers of an output: whether they are right."""
    wanted = found.average[window]
    close = np.abs(said["average"] - wanted) <= np.maximum(RELATIVE * np.abs(wanted), ABSOLUTE)
    close &= said["minimum"] == found.minimum[window]
    close &= said["maximum"] == found.maximum[window]
    close &= said["count"] == found.count[window]
    return np.asarray(close & said["readable"], dtype=np.bool_)


@dataclass(slots=True)
class Given:
    """Per window the output that answers it; per output whether it is extra or surplus."""

    answer: Ints
    extra: Bools
    surplus: Bools
    unjudged: Bools


def give(found: Windows, stream: Stream, outputs: Outputs) -> Given:
    """Assign outputs to windows: by key where there is one, by order where there is none."""
    topic, start = outputs.topic, outputs.columns["start"]
    count = len(start)
    given = Given(
        answer=np.full(len(found), NOBODY, dtype=np.int64),
        extra=~outputs.columns["readable"],
        surplus=np.zeros(count, dtype=np.bool_),
        unjudged=np.zeros(count, dtype=np.bool_),
    )
    keyless = (start == KEYLESS) & ~given.extra
    place = np.searchsorted(found.start, start)
    known = place < len(found)
    known[known] = found.start[place[known]] == start[known]
    given.extra |= ~known & ~keyless
    keyed = np.flatnonzero(known & ~keyless & ~given.extra)
    final = _last_of_each(keyed, place, topic)
    given.answer[place[final]] = final
    given.surplus[keyed] = True
    last = len(found) - 1
    given.unjudged[keyed[place[keyed] == last]] = True
    rows = np.flatnonzero(keyless)
    if len(rows):
        _give_by_order(found, stream, outputs, rows, given)
    answers = given.answer[given.answer >= 0]
    given.surplus[answers] = False
    given.surplus &= ~given.unjudged
    return given


def _last_of_each(keyed: Ints, place: Ints, topic: Topic) -> Ints:
    """The last output of every window: the highest offset of its key's partition.

    A key belongs to one partition. Where a system wrote it into several, the last of each
    partition compete, and the one stamped last wins.
    """
    offset, partition = topic.places.offset.at(keyed), topic.places.partition.at(keyed)
    order = np.lexsort((offset, partition, place[keyed]))
    ordered, partition = keyed[order], partition[order]
    ends = np.ones(len(order), dtype=np.bool_)
    ends[:-1] = np.diff(place[ordered]) != 0
    ends[:-1] |= np.diff(partition) != 0
    finals = ordered[ends]
    return finals[np.lexsort((topic.timestamp_ms[finals], place[finals]))]


def _give_by_order(
    found: Windows, stream: Stream, outputs: Outputs, rows: Ints, given: Given
) -> None:
    topic = outputs.topic
    offset, partition = topic.offset[rows], topic.partition[rows]
    # Where there is but one partition, its order is that of the outputs, whatever the clock said.
    several = len(rows) and (partition != partition[0]).any()
    came = topic.timestamp_ms[rows] if several else np.zeros_like(offset)
    rows = rows[np.lexsort((offset, partition, came))]
    free = np.flatnonzero(given.answer == NOBODY)
    free_end = None
    if len(free) and int(free[-1]) == len(found) - 1:
        # What was said before all of the last window had come belongs to an earlier one.
        complete_ms = stream.topic.timestamp_ms[found.last_row[-1]] if topic.stamped else 0
        free_end = topic.timestamp_ms[rows] >= complete_ms
    said = said_by(outputs, rows)

    def equal(window: Ints, output: Ints) -> Bools:
        return right(found, free[window], {name: said[name][output] for name in NUMBERS})

    pairs = _exchanged(found, free, said, equal, free_end)
    given.answer[free[pairs[:, 0]]] = rows[pairs[:, 1]]
    paired = np.zeros(len(rows), dtype=np.bool_)
    paired[pairs[:, 1]] = True
    given.extra[rows[~paired]] = True
    last = pairs[free[pairs[:, 0]] == len(found) - 1, 1]
    given.unjudged[rows[last]] = True


def _exchanged(
    found: Windows,
    free: Ints,
    said: Columns,
    equal: Callable[[Ints, Ints], Bools],
    free_end: Bools | None,
) -> Ints:
    """Pairs of a free window and an output by their order, and of right ones out of order, too."""
    pairs = align(len(free), len(said["count"]), equal, free_end=free_end)
    judged = free < len(found) - 1
    kept = pairs[equal(pairs[:, 0], pairs[:, 1])]
    kept = kept[judged[kept[:, 0]]]
    windows_left = np.setdiff1d(np.arange(len(free)), kept[:, 0])
    outputs_left = np.setdiff1d(np.arange(len(said["count"])), kept[:, 1])
    by_numbers: dict[tuple[float, ...], list[int]] = {}
    for output in outputs_left[::-1].tolist():
        numbers = tuple(float(said[name][output]) for name in EXACT)
        by_numbers.setdefault(numbers, []).append(output)
    moved = []
    for window in windows_left[judged[windows_left]].tolist():
        row = free[window]
        numbers = (float(found.minimum[row]), float(found.maximum[row]), float(found.count[row]))
        waiting = by_numbers.get(numbers, [])
        for output in waiting[::-1]:
            if equal(np.array([window]), np.array([output]))[0]:
                moved.append((window, output))
                waiting.remove(output)
                break
    if not moved:
        return pairs
    moved_pairs = np.array(moved, dtype=np.int64)
    windows_left = np.setdiff1d(windows_left, moved_pairs[:, 0])
    outputs_left = np.setdiff1d(outputs_left, moved_pairs[:, 1])
    ends = free_end is not None and len(windows_left) and windows_left[-1] == len(free) - 1
    rest = align(
        len(windows_left),
        len(outputs_left),
        lambda window, output: equal(windows_left[window], outputs_left[output]),
        free_end=free_end[outputs_left] if free_end is not None and ends else None,
    )
    rest = np.stack([windows_left[rest[:, 0]], outputs_left[rest[:, 1]]], axis=1)
    return np.concatenate([kept, moved_pairs, rest])


def _key(key: bytes | None) -> int:
    """The window's start; a key that is none is that of no window."""
    if not key:
        return KEYLESS
    return int(key) if key.isdigit() and len(key) <= 18 else NO_WINDOW
