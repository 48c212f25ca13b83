"""Judging the queries that answer record by record: identity, 2, 3 and 4."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from validator.expected import Expected, narrow
from validator.matching import DUPLICATE, EXTRA, MATCHED, WRONG, Floats, Matching, identity_codes
from validator.order import out_of_order
from validator.outcome import UNKNOWN_MS, Answers, Outcome
from validator.outputs import Outputs
from validator.packed import Packed
from validator.records import Bools, Ints, Rows
from validator.slices import SLICE, match_by_slices, of_inputs
from validator.streams import Stream
from validator.witnesses import show_records


@dataclass(frozen=True, slots=True)
class Case:
    """What is to be compared, and how.

    `plausible`: which outputs could answer some input that was not captured. `by_value`: outputs
    and inputs without an identity are matched by their whole value (identity echoes what is
    malformed). `shown`: the answer of an input, from its value and the row of its expectation.
    """

    streams: list[Stream]
    expected: Expected
    outputs: Outputs
    plausible: Bools
    exactly_once: bool
    shown: Callable[[bytes | None, int], bytes | None]
    by_value: bool = False
    # A number of the expected outputs, that of the outputs being `number`, and how far apart they
    # may be.
    numbers: Floats | None = None
    tolerance: float = 0.0
    # Windows: a single input that was not captured may change every answer.
    every_input_counts: bool = False


def judge_records(case: Case) -> Outcome:
    """Compare, count, and tell what is certain from what missing evidence leaves open."""
    expected = case.expected
    found = match_by_slices(case)
    required = ~expected.optional
    answered = found.answer >= 0
    moved = _moved(case, found)
    # Of the borderline, what came with another value is judged like what had to come.
    judged = required | (answered & ~found.right)
    outcome = Outcome()
    outcome.counts = {
        "expected": int(judged.sum()),
        "actual": len(case.outputs),
        "matched": int((found.right & required).sum()),
        "missing": int((~answered & required).sum()),
        "extra": found.count(EXTRA),
        "wrong": found.count(WRONG),
        "duplicate": found.count(DUPLICATE),
        "out_of_order": len(moved),
        "surplus": 0,
        "borderline": int(expected.optional.sum()),
    }
    _decide(case, found, outcome)
    outcome.witnesses = show_records(case, found, moved)
    outcome.answers = _answers(case, found, required)
    return outcome


def _moved(case: Case, found: Matching) -> Ints:
    """The outputs that are out of order, rising."""
    rows = narrow(np.flatnonzero(found.kind == MATCHED), len(case.outputs))
    # Of each lane the last places, in the sink and in the source.
    ends: dict[int, tuple[int, int]] = {}
    if all(
        _in_order(*_lanes(case, found, rows[begin : begin + SLICE]), ends)
        for begin in range(0, len(rows), SLICE)
    ):
        return np.zeros(0, dtype=np.int64)
    return np.asarray(rows[out_of_order(*_lanes(case, found, rows))], dtype=np.int64)


def _lanes(case: Case, found: Matching, rows: Rows) -> tuple[Ints, Ints, Ints]:
    """Lane, offset and the input's offset of outputs; order is kept within a lane."""
    inputs, places = found.expected[rows], case.outputs.topic.places
    lane = case.expected.source[inputs].astype(np.int64) << 62
    lane += of_inputs(case.streams, case.expected, "partition", case.expected.row, inputs) << 31
    lane += places.partition.at(rows)
    offset = of_inputs(case.streams, case.expected, "offset", case.expected.row, inputs)
    return lane, places.offset.at(rows), offset


def _in_order(lane: Ints, offset: Ints, source: Ints, ends: dict[int, tuple[int, int]]) -> bool:
    """Whether these go on in the order of their lanes, as the rows are; takes note in `ends`."""
    if len(lane) and (lane != lane[0]).any():
        order = np.argsort(lane, kind="stable")
        lane, offset, source = lane[order], offset[order], source[order]
    change = lane[1:] != lane[:-1]
    if not (change | ((offset[1:] > offset[:-1]) & (source[1:] > source[:-1]))).all():
        return False
    borders = [0, *(np.flatnonzero(change) + 1).tolist(), len(lane)]
    for begin, end in pairwise(borders):
        last = ends.get(int(lane[begin]), (-1, -1))
        if offset[begin] <= last[0] or source[begin] <= last[1]:
            return False
        ends[int(lane[begin])] = int(offset[end - 1]), int(source[end - 1])
    return True


def _decide(case: Case, found: Matching, outcome: Outcome) -> None:
    """Hold against the system under test what the evidence proves, leave open what it does not."""
    source_whole = all(stream.topic.evidence.complete for stream in case.streams)
    sink = case.outputs.topic
    sink_whole = sink.evidence.complete
    counts = outcome.counts

    unanswered = counts["missing"]
    proves_absence = sink_whole and not sink.late_start
    judged = proves_absence and (source_whole or not case.every_input_counts)
    (outcome.hold_against if judged else outcome.leave_open)("missing", unanswered)
    if unanswered and sink_whole and sink.late_start:
        outcome.reasons.append(sink.late_words)

    certain = source_whole or not case.every_input_counts
    (outcome.hold_against if certain else outcome.leave_open)("wrong", counts["wrong"])

    extra = np.flatnonzero(found.kind == EXTRA)
    surely = len(extra)
    if surely and not source_whole:
        impossible = ~case.plausible[extra]
        if not case.every_input_counts:
            impossible |= _input_is_known(case, extra)
        surely = int(impossible.sum())
    outcome.hold_against("extra", surely)
    outcome.leave_open("extra", len(extra) - surely)

    if case.exactly_once:
        outcome_of = outcome.hold_against if source_whole else outcome.leave_open
        outcome_of("duplicate", counts["duplicate"])


def _input_is_known(case: Case, rows: Ints) -> Bools:
    """Which outputs name an input that was captured: it cannot be the input that is missing."""
    columns = case.outputs.columns
    known = np.zeros(len(rows), dtype=np.bool_)
    for stream in case.streams:
        have = stream["has_identity"]
        ours, theirs = identity_codes(
            stream["workplace"][have],
            stream["id"][have],
            columns["workplace"][rows],
            columns["id"][rows],
        )
        known |= np.isin(theirs, ours)
    known &= columns["has_identity"][rows]
    return known


def _answers(case: Case, found: Matching, required: Bools) -> Answers:
    expected = case.expected
    asked = narrow(np.flatnonzero(required), len(required))
    given = (found.answer >= 0)[asked]
    given_ms = np.full(len(asked), UNKNOWN_MS, dtype=np.int64)
    given_ms[given] = case.outputs.topic.places.timestamp_ms.at(found.answer[asked][given])
    given_packed = Packed.of(given_ms)
    del given_ms
    due_ms = of_inputs(case.streams, case.expected, "due_ms", expected.owed_row, asked)
    due_ms[
        ~of_inputs(case.streams, case.expected, "has_due", expected.owed_row, asked).astype(
            np.bool_
        )
    ] = UNKNOWN_MS
    due_packed = Packed.of(due_ms)
    del due_ms
    numbers = np.array([stream.number for stream in case.streams], dtype=np.int8)
    return Answers(
        stream=Packed.of(numbers[expected.source[asked]]),
        partition=Packed.of(
            of_inputs(case.streams, case.expected, "partition", expected.row, asked)
        ),
        offset=Packed.of(of_inputs(case.streams, case.expected, "offset", expected.row, asked)),
        id=Packed.of(of_inputs(case.streams, case.expected, "id", expected.row, asked)),
        owed_ms=Packed.of(
            of_inputs(case.streams, case.expected, "timestamp_ms", expected.owed_row, asked)
        ),
        given_ms=given_packed,
        due_ms=due_packed,
        given=given,
        matched=(found.right[asked] & given),
    )
