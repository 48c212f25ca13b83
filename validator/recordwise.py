"""Judging the queries that answer record by record: identity, 2, 3 and 4."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from validator.expected import Expected
from validator.matching import (
    DUPLICATE,
    EXTRA,
    MATCHED,
    WRONG,
    Floats,
    Matching,
    Side,
    identity_codes,
    match,
)
from validator.order import out_of_order
from validator.outcome import UNKNOWN_MS, WITNESSES_PER_KIND, Answers, Outcome, Witness
from validator.outputs import Outputs
from validator.records import Bools, Ints, text
from validator.streams import Stream
from validator.texts import take, value


@dataclass(frozen=True, slots=True)
class Case:
    """What is to be compared, and how.

    `plausible`: which outputs could answer some input that was not captured. `by_value`: outputs
    and inputs without an identity are matched by their whole value (identity echoes what is
    malformed).
    `texts`: the part of the outputs that must be equal, where that is not the whole value.
    """

    streams: list[Stream]
    expected: Expected
    outputs: Outputs
    plausible: Bools
    exactly_once: bool
    by_value: bool = False
    texts: pa.ChunkedArray | None = None
    # A number in expected and actual outputs, and how far apart they may be.
    numbers: tuple[Floats, Floats] | None = None
    tolerance: float = 0.0
    # Windows: a single input that was not captured may change every answer.
    every_input_counts: bool = False


def judge_records(case: Case) -> Outcome:
    """Compare, count, and tell what is certain from what missing evidence leaves open."""
    expected, outputs = case.expected, case.outputs
    expected_code, output_code = _codes(case)
    owed_ms = _of_last_input(case, lambda stream: stream.topic.timestamp_ms)
    found = match(
        Side(expected_code, expected.text, owed_ms, case.numbers[0] if case.numbers else None),
        Side(
            output_code,
            outputs.values if case.texts is None else case.texts,
            outputs.topic.timestamp_ms if outputs.topic.stamped else np.zeros_like(output_code),
            case.numbers[1] if case.numbers else None,
        ),
        case.tolerance,
    )
    required = ~expected.optional
    answered = found.answer >= 0
    moved = _moved(case, found)
    # Of the borderline, what came with another value is judged like what had to come.
    judged = required | (answered & ~found.right)
    outcome = Outcome()
    outcome.counts = {
        "expected": int(judged.sum()),
        "actual": len(outputs),
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
    outcome.answers = _answers(case, found, required, owed_ms)
    outcome.witnesses = _witnesses(case, found, moved)
    return outcome


def _codes(case: Case) -> tuple[Ints, Ints]:
    """Identity codes of both sides; an output without an identity gets one that nobody expects."""
    outputs, expected = case.outputs, case.expected
    workplace = _of_input(case, lambda stream: stream["workplace"])
    number = _of_input(case, lambda stream: stream["id"])
    has_identity = _of_input(case, lambda stream: stream["has_identity"]).astype(np.bool_)
    output_has = outputs.columns["has_identity"]
    expected_code, output_code = identity_codes(
        workplace, number, outputs.columns["workplace"], outputs.columns["id"]
    )
    if has_identity.all() and output_has.all():
        return expected_code, output_code
    above = 1 + max(int(expected_code.max(initial=0)), int(output_code.max(initial=0)))
    expected_rows = np.flatnonzero(~has_identity)
    output_rows = np.flatnonzero(~output_has)
    if case.by_value:
        both = pa.concat_arrays(
            [take(expected.text, expected_rows), take(outputs.values, output_rows)]
        )
        codes = both.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
    else:
        codes = np.arange(len(expected_rows) + len(output_rows))
    expected_code[expected_rows] = above + codes[: len(expected_rows)]
    output_code[output_rows] = above + codes[len(expected_rows) :]
    return expected_code, output_code


def _of_input(case: Case, column: Callable[[Stream], Any]) -> Ints:
    """A column of the expected outputs' own inputs."""
    return _of_rows(case, column, case.expected.row)


def _of_last_input(case: Case, column: Callable[[Stream], Any]) -> Ints:
    """A column of the last inputs that the expected outputs need."""
    return _of_rows(case, column, case.expected.owed_row)


def _of_rows(case: Case, column: Callable[[Stream], Any], rows: Ints) -> Ints:
    if len(case.streams) == 1:
        return np.asarray(column(case.streams[0])[rows], dtype=np.int64)
    found = np.zeros(len(rows), dtype=np.int64)
    for place, stream in enumerate(case.streams):
        here = case.expected.source == place
        found[here] = column(stream)[rows[here]]
    return found


def _moved(case: Case, found: Matching) -> Ints:
    """The outputs that are out of order, rising."""
    rows = np.flatnonzero(found.kind == MATCHED)
    inputs = found.expected[rows]
    source = case.expected.source[inputs]
    partition = _of_input(case, lambda stream: stream.topic.partition)[inputs]
    offset = _of_input(case, lambda stream: stream.topic.offset)[inputs]
    sink = case.outputs.topic
    lane = source
    for part in (partition, sink.partition[rows]):
        lane = lane * (int(part.max(initial=0)) + 1) + part
    return rows[out_of_order(lane, sink.offset[rows], offset)]


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
        outcome.reasons.append(
            f"{sink.evidence.file} begins after offset 0: what is missing may stand before it"
        )

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


def _answers(case: Case, found: Matching, required: Bools, owed_ms: Ints) -> Answers:
    sink = case.outputs.topic
    given = found.answer >= 0
    given_ms = np.full(len(required), UNKNOWN_MS, dtype=np.int64)
    given_ms[given] = sink.timestamp_ms[found.answer[given]]
    has_due = _of_last_input(case, lambda stream: stream["has_due"]).astype(np.bool_)
    due_ms = np.where(has_due, _of_last_input(case, lambda stream: stream["due_ms"]), UNKNOWN_MS)
    numbers = np.array([stream.number for stream in case.streams], dtype=np.int64)
    return Answers(
        stream=numbers[case.expected.source[required]],
        partition=_of_input(case, lambda stream: stream.topic.partition)[required],
        offset=_of_input(case, lambda stream: stream.topic.offset)[required],
        id=_of_input(case, lambda stream: stream["id"])[required],
        owed_ms=owed_ms[required],
        given_ms=given_ms[required],
        due_ms=due_ms[required],
        given=given[required],
        matched=(found.right & given)[required],
    )


def _witnesses(case: Case, found: Matching, moved: Ints) -> list[Witness]:
    expected = case.expected
    sink = case.outputs.topic
    shown: list[Witness] = []

    def input_of(row: int) -> dict[str, object]:
        stream = case.streams[int(expected.source[row])]
        place = int(expected.row[row])
        return {
            "topic": stream.topic.name,
            "partition": int(stream.topic.partition[place]),
            "offset": int(stream.topic.offset[place]),
        }

    def show_output(kind: str, row: int) -> Witness:
        answered = int(found.expected[row])
        return Witness(
            kind=kind,
            topic=sink.name,
            partition=int(sink.partition[row]),
            offset=int(sink.offset[row]),
            expected=text(value(expected.text, answered)) if answered >= 0 else None,
            actual=text(value(case.outputs.values, row)),
            more={"input": input_of(answered)} if answered >= 0 else {},
        )

    def show_input(kind: str, row: int) -> Witness:
        place, answer = input_of(row), int(found.answer[row])
        return Witness(
            kind=kind,
            topic=str(place["topic"]),
            partition=int(str(place["partition"])),
            offset=int(str(place["offset"])),
            expected=text(value(expected.text, row)),
            actual=text(value(case.outputs.values, answer)) if answer >= 0 else None,
        )

    def first(rows: Ints) -> list[int]:
        order = np.lexsort((sink.offset[rows], sink.partition[rows]))
        return [int(row) for row in rows[order][:WITNESSES_PER_KIND]]

    shown.extend(show_output("wrong", row) for row in first(np.flatnonzero(found.kind == WRONG)))
    missing = np.flatnonzero(found.missing & ~expected.optional)[:WITNESSES_PER_KIND]
    shown.extend(show_input("missing", int(row)) for row in missing)
    shown.extend(show_output("extra", row) for row in first(np.flatnonzero(found.kind == EXTRA)))
    shown.extend(
        show_output("duplicate", row) for row in first(np.flatnonzero(found.kind == DUPLICATE))
    )
    shown.extend(show_output("out_of_order", row) for row in first(moved))
    borderline = np.flatnonzero(expected.optional)[:WITNESSES_PER_KIND]
    shown.extend(show_input("borderline", int(row)) for row in borderline)
    return shown
