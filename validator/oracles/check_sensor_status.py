"""Query 1, check-sensor-status: mf01's average, minimum, maximum and count per second.

Windows are [s, s+1000) ms of LogAppendTime, aligned to the epoch, over all partitions. The last
window that has input is not judged. Of several outputs for one window the last counts, the others
are surplus; an output for a window without input, or one that cannot be read, is extra.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from validator.alignment import align
from validator.latency import statistics
from validator.oracles.base import Inputs, Oracle
from validator.outcome import UNKNOWN_MS, WITNESSES_PER_KIND, Answers, Outcome, Witness
from validator.outputs import Outputs
from validator.records import Bools, Ints, text
from validator.streams import Columns, Stream
from validator.texts import value
from validator.topics import Topic, order_of

WINDOW_MS = 1_000
# Three decimals are off by half of the last one at most; as binary numbers a little more.
RELATIVE, ABSOLUTE = 1e-9, 0.0005 + 1e-9
NOBODY = -1
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
    stamps = stream.topic.timestamp_ms[rows]
    order = order_of(stamps, stream.topic.offset[rows])
    if order is not None:
        rows, stamps = rows[order], stamps[order]
    mf01 = stream["mf01"][rows]
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


def read_output(values: pa.Array) -> Columns:
    """`avg,min,max,count` as numbers; `readable` where it is that."""
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
    }


def _numbers(one: bytes | None) -> tuple[float, ...] | None:
    if one is None or not _VALUE.fullmatch(one):
        return None
    numbers = tuple(float(part) for part in one.split(b","))
    return numbers if np.isfinite(numbers).all() else None


def right(found: Windows, window: Ints, columns: Columns, row: Ints) -> Bools:
    """For pairs of windows and outputs: whether the output is right."""
    average, wanted = columns["average"][row], found.average[window]
    close = np.abs(average - wanted) <= np.maximum(RELATIVE * np.abs(wanted), ABSOLUTE)
    close &= columns["minimum"][row] == found.minimum[window]
    close &= columns["maximum"][row] == found.maximum[window]
    close &= columns["count"][row] == found.count[window]
    return np.asarray(close & columns["readable"][row], dtype=np.bool_)


@dataclass(slots=True)
class _Given:
    """Per window the output that answers it; per output whether it is extra or surplus."""

    answer: Ints
    extra: Bools
    surplus: Bools
    unjudged: Bools


def _give(found: Windows, outputs: Outputs) -> _Given:
    """Assign outputs to windows: by key where there is one, by order where there is none."""
    count, topic = len(outputs), outputs.topic
    given = _Given(
        answer=np.full(len(found), NOBODY, dtype=np.int64),
        extra=~outputs.columns["readable"],
        surplus=np.zeros(count, dtype=np.bool_),
        unjudged=np.zeros(count, dtype=np.bool_),
    )
    keys = [_key(one) for one in outputs.keys.to_pylist()]
    keyless = np.array([key is None for key in keys], dtype=np.bool_) & ~given.extra
    start = np.array([-1 if key is None else key for key in keys], dtype=np.int64)
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
        _give_by_order(found, outputs, rows, given)
    answers = given.answer[given.answer >= 0]
    given.surplus[answers] = False
    given.surplus &= ~given.unjudged
    return given


def _last_of_each(keyed: Ints, place: Ints, topic: Topic) -> Ints:
    """The last output of every window: the highest offset of its key's partition.

    A key belongs to one partition. Where a system wrote it into several, the last of each
    partition compete, and the one stamped last wins.
    """
    order = keyed[np.lexsort((topic.offset[keyed], topic.partition[keyed], place[keyed]))]
    lane = np.stack([place[order], topic.partition[order]])
    ends = np.ones(len(order), dtype=np.bool_)
    ends[:-1] = (np.diff(lane, axis=1) != 0).any(axis=0)
    finals = order[ends]
    return finals[np.lexsort((topic.timestamp_ms[finals], place[finals]))]


def _give_by_order(found: Windows, outputs: Outputs, rows: Ints, given: _Given) -> None:
    topic = outputs.topic
    rows = rows[np.lexsort((topic.offset[rows], topic.partition[rows], topic.timestamp_ms[rows]))]
    free = np.flatnonzero(given.answer == NOBODY)
    pairs = align(
        len(free),
        len(rows),
        lambda window, output: right(found, free[window], outputs.columns, rows[output]),
        free_end=bool(len(free)) and int(free[-1]) == len(found) - 1,
    )
    given.answer[free[pairs[:, 0]]] = rows[pairs[:, 1]]
    paired = np.zeros(len(rows), dtype=np.bool_)
    paired[pairs[:, 1]] = True
    given.extra[rows[~paired]] = True
    last = pairs[free[pairs[:, 0]] == len(found) - 1, 1]
    given.unjudged[rows[last]] = True


def _key(key: bytes | None) -> int | None:
    """The window's start; a key that is none is that of no window (-2), no key is None."""
    if not key:
        return None
    return int(key) if key.isdigit() and len(key) <= 18 else -2


def _judge(inputs: Inputs) -> Outcome:
    outputs, (stream,) = inputs.outputs, inputs.streams
    assert outputs is not None  # noqa: S101 - this query has a sink
    if not stream.topic.stamped:
        return _without_windows(outputs)
    found = windows(stream)
    given = _give(found, outputs)
    judged = np.arange(len(found)) < len(found) - 1
    answered = given.answer >= 0
    good = np.zeros(len(found), dtype=np.bool_)
    rows = np.flatnonzero(answered)
    good[rows] = right(found, rows, outputs.columns, given.answer[rows])
    outcome = Outcome()
    wrong = judged & answered & ~good
    outcome.counts = {
        "expected": int(judged.sum()),
        "actual": len(outputs),
        "matched": int((judged & good).sum()),
        "missing": int((judged & ~answered).sum()),
        "extra": int(given.extra.sum()),
        "wrong": int(wrong.sum()),
        "duplicate": 0,
        "out_of_order": 0,
        "surplus": int(given.surplus.sum()),
        "borderline": 0,
    }
    _decide(inputs, found, given, wrong, outcome)
    outcome.answers = _answers(stream, outputs, found, given, good)
    # Updates may precede the end of their window, but not the last record that they count.
    outcome.needs_ms = stream.topic.timestamp_ms[found.last_row[judged]]
    outcome.witnesses = _witnesses(stream, outputs, found, given, wrong, judged)
    outcome.extras = _updates(stream, outputs, found, given, judged & good)
    return outcome


def _without_windows(outputs: Outputs) -> Outcome:
    """What can be held against outputs while nobody knows the windows: that they are none."""
    unreadable = ~outputs.columns["readable"]
    outcome = Outcome(reasons=["without LogAppendTime the windows are not known"])
    outcome.counts = {"extra": int(unreadable.sum())}
    outcome.hold_against("extra", outcome.counts["extra"])
    outcome.witnesses = [
        _shown_output(outputs, "extra", int(row))
        for row in np.flatnonzero(unreadable)[:WITNESSES_PER_KIND]
    ]
    return outcome


def _decide(inputs: Inputs, found: Windows, given: _Given, wrong: Bools, outcome: Outcome) -> None:
    """A lost input may change any window; in a torn sink a later update may be lost."""
    outputs, (stream,) = inputs.outputs, inputs.streams
    assert outputs is not None  # noqa: S101 - this query has a sink
    source_whole = stream.topic.evidence.complete
    sink = outputs.topic
    sink_whole = sink.evidence.complete and not sink.late_start
    counts = outcome.counts
    both = source_whole and sink_whole
    (outcome.hold_against if both else outcome.leave_open)("missing", counts["missing"])

    rows = np.flatnonzero(wrong)
    answers = given.answer[rows]
    columns = outputs.columns
    # Of a part of the window's records; what counts them all cannot be right later.
    could_be_update = columns["count"][answers] < found.count[rows]
    could_be_update &= columns["minimum"][answers] >= found.minimum[rows]
    could_be_update &= columns["maximum"][answers] <= found.maximum[rows]
    could_be_update &= columns["average"][answers] >= columns["minimum"][answers] - ABSOLUTE
    could_be_update &= columns["average"][answers] <= columns["maximum"][answers] + ABSOLUTE
    surely = len(rows) if sink.evidence.complete else int((~could_be_update).sum())
    surely = surely if source_whole else 0
    outcome.hold_against("wrong", surely)
    outcome.leave_open("wrong", len(rows) - surely)

    unreadable = int((given.extra & ~columns["readable"]).sum())
    surely = counts["extra"] if source_whole else unreadable
    outcome.hold_against("extra", surely)
    outcome.leave_open("extra", counts["extra"] - surely)


def _answers(
    stream: Stream, outputs: Outputs, found: Windows, given: _Given, good: Bools
) -> Answers:
    judged = slice(0, max(len(found) - 1, 0))
    rows, answer = found.last_row[judged], given.answer[judged]
    came = answer >= 0
    given_ms = np.full(len(answer), UNKNOWN_MS, dtype=np.int64)
    given_ms[came] = outputs.topic.timestamp_ms[answer[came]]
    return Answers(
        stream=np.full(len(rows), stream.number, dtype=np.int64),
        partition=stream.topic.partition[rows],
        offset=stream.topic.offset[rows],
        id=stream["id"][rows],
        owed_ms=found.start[judged] + WINDOW_MS,
        given_ms=given_ms,
        due_ms=stream["due_ms"][rows],
        given=came,
        matched=good[judged],
    )


def _updates(
    stream: Stream, outputs: Outputs, found: Windows, given: _Given, matched: Bools
) -> dict[str, Any]:
    """Update latency: from the window's last record to its output."""
    if not outputs.topic.stamped:
        return {"update_latency_ms": None}
    rows = np.flatnonzero(matched)
    took = outputs.topic.timestamp_ms[given.answer[rows]]
    took = took - stream.topic.timestamp_ms[found.last_row[rows]]
    return {"update_latency_ms": statistics(took)}


def _witnesses(
    stream: Stream, outputs: Outputs, found: Windows, given: _Given, wrong: Bools, judged: Bools
) -> list[Witness]:
    shown = [
        _shown_output(outputs, "wrong", int(given.answer[window]), found.shown(int(window)))
        for window in np.flatnonzero(wrong)[:WITNESSES_PER_KIND]
    ]
    missing = np.flatnonzero(judged & (given.answer == NOBODY))[:WITNESSES_PER_KIND]
    for window in missing:
        row = int(found.last_row[window])
        shown.append(
            Witness(
                kind="missing",
                topic=stream.topic.name,
                partition=int(stream.topic.partition[row]),
                offset=int(stream.topic.offset[row]),
                expected=found.shown(int(window)),
                actual=None,
                more={"key": str(int(found.start[window]))},
            )
        )
    for kind, mask in (("extra", given.extra), ("surplus", given.surplus)):
        rows = np.flatnonzero(mask)[:WITNESSES_PER_KIND]
        shown.extend(_shown_output(outputs, kind, int(row)) for row in rows)
    return shown


def _shown_output(outputs: Outputs, kind: str, row: int, expected: str | None = None) -> Witness:
    return Witness(
        kind=kind,
        topic=outputs.topic.name,
        partition=int(outputs.topic.partition[row]),
        offset=int(outputs.topic.offset[row]),
        expected=expected,
        actual=text(value(outputs.values, row)),
        more={"key": text(value(outputs.keys, row))},
    )


def _keeps(columns: Columns) -> Bools:
    return np.zeros(len(columns["id"]), dtype=np.bool_)


ORACLE = Oracle("check-sensor-status", _keeps, read_output, _judge, ("mf01",))
