"""Query 1, check-sensor-status: mf01's average, minimum, maximum and count per second.

Windows are [s, s+1000) ms of LogAppendTime, aligned to the epoch, over all partitions. The last
window that has input is not judged. Of several outputs for one window the last counts, the others
are surplus; an output for a window without input, or one that cannot be read, is extra.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from validator.latency import statistics
from validator.oracles.base import Inputs, Oracle
from validator.oracles.windows import (
    ABSOLUTE,
    NOBODY,
    WINDOW_MS,
    Given,
    Windows,
    give,
    read_output,
    right,
    said_by,
    windows,
)
from validator.order import out_of_order
from validator.outcome import UNKNOWN_MS, WITNESSES_PER_KIND, Answers, Outcome, Witness
from validator.outputs import Outputs
from validator.records import Bools, Ints, text
from validator.streams import Columns, Stream
from validator.witnesses import place_of


def _judge(inputs: Inputs) -> Outcome:
    outputs, (stream,) = inputs.outputs, inputs.streams
    assert outputs is not None  # noqa: S101 - this query has a sink
    if not stream.topic.stamped:
        return _without_windows(outputs)
    found = windows(stream)
    given = give(found, stream, outputs)
    judged = np.arange(len(found)) < len(found) - 1
    answered = given.answer >= 0
    good = np.zeros(len(found), dtype=np.bool_)
    rows = np.flatnonzero(answered)
    good[rows] = right(found, rows, said_by(outputs, given.answer[rows]))
    outcome = Outcome()
    wrong = judged & answered & ~good
    matched = np.flatnonzero(judged & good)
    finals, places = given.answer[matched], outputs.topic.places
    moved = finals[out_of_order(places.partition.at(finals), places.offset.at(finals), matched)]
    outcome.counts = {
        "expected": int(judged.sum()),
        "actual": len(outputs),
        "matched": len(matched),
        "missing": int((judged & ~answered).sum()),
        "extra": int(given.extra.sum()),
        "wrong": int(wrong.sum()),
        "duplicate": 0,
        "out_of_order": len(moved),
        "surplus": int(given.surplus.sum()),
        "borderline": 0,
    }
    _decide(inputs, found, given, wrong, outcome)
    outcome.answers = _answers(stream, outputs, found, given, good)
    # Updates may precede the end of their window, but not the last record that they count.
    outcome.needs_ms = stream.topic.timestamp_ms[found.last_row[judged]]
    outcome.witnesses = _witnesses(stream, outputs, found, given, wrong, judged, moved)
    outcome.extras = _updates(stream, outputs, found, given, judged & good)
    outcome.extras["not_judged"] = int(given.unjudged.sum())
    return outcome


def _without_windows(outputs: Outputs) -> Outcome:
    """What can be held against outputs while nobody knows the windows: that they are none."""
    unreadable = ~outputs.columns["readable"]
    outcome = Outcome(reasons=["without LogAppendTime the windows are not known"])
    outcome.counts = {"extra": int(unreadable.sum())}
    outcome.hold_against("extra", outcome.counts["extra"])
    outcome.witnesses = _shown_outputs(outputs, "extra", np.flatnonzero(unreadable))
    return outcome


def _decide(inputs: Inputs, found: Windows, given: Given, wrong: Bools, outcome: Outcome) -> None:
    """A lost input may change any window; in a torn sink a later update may be lost."""
    outputs, (stream,) = inputs.outputs, inputs.streams
    assert outputs is not None  # noqa: S101 - this query has a sink
    source_whole = stream.topic.evidence.complete
    sink = outputs.topic
    sink_whole = sink.evidence.complete and not sink.late_start
    counts = outcome.counts
    both = source_whole and sink_whole
    (outcome.hold_against if both else outcome.leave_open)("missing", counts["missing"])
    if counts["missing"] and sink.evidence.complete and sink.late_start:
        outcome.reasons.append(sink.late_words)

    rows = np.flatnonzero(wrong)
    said = said_by(outputs, given.answer[rows])
    # Of a part of the window's records; what counts them all cannot be right later.
    could_be_update = said["count"] < found.count[rows]
    could_be_update &= said["minimum"] >= found.minimum[rows]
    could_be_update &= said["maximum"] <= found.maximum[rows]
    could_be_update &= said["average"] >= said["minimum"] - ABSOLUTE
    could_be_update &= said["average"] <= said["maximum"] + ABSOLUTE
    surely = len(rows) if sink.evidence.complete else int((~could_be_update).sum())
    surely = surely if source_whole else 0
    outcome.hold_against("wrong", surely)
    outcome.leave_open("wrong", len(rows) - surely)

    unreadable = int((given.extra & ~outputs.columns["readable"]).sum())
    surely = counts["extra"] if source_whole else unreadable
    outcome.hold_against("extra", surely)
    outcome.leave_open("extra", counts["extra"] - surely)


def _answers(
    stream: Stream, outputs: Outputs, found: Windows, given: Given, good: Bools
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
    stream: Stream, outputs: Outputs, found: Windows, given: Given, matched: Bools
) -> dict[str, Any]:
    """Update latency: from the window's last record to its output."""
    if not outputs.topic.stamped:
        return {"update_latency_ms": None}
    rows = np.flatnonzero(matched)
    took = outputs.topic.timestamp_ms[given.answer[rows]]
    took = took - stream.topic.timestamp_ms[found.last_row[rows]]
    return {"update_latency_ms": statistics(took)}


def _witnesses(
    stream: Stream,
    outputs: Outputs,
    found: Windows,
    given: Given,
    wrong: Bools,
    judged: Bools,
    moved: Ints,
) -> list[Witness]:
    windows_wrong = np.flatnonzero(wrong)[:WITNESSES_PER_KIND]
    expected = [found.shown(window) for window in windows_wrong.tolist()]
    shown = _shown_outputs(outputs, "wrong", given.answer[windows_wrong], expected)
    missing = np.flatnonzero(judged & (given.answer == NOBODY))[:WITNESSES_PER_KIND]
    for window in missing:
        row = int(found.last_row[window])
        shown.append(
            Witness(
                kind="missing",
                **place_of(stream.topic, row),
                expected=found.shown(int(window)),
                actual=None,
                more={"key": str(int(found.start[window]))},
            )
        )
    for kind, rows in (
        ("extra", np.flatnonzero(given.extra)),
        ("out_of_order", moved),
        ("surplus", np.flatnonzero(given.surplus)),
    ):
        shown.extend(_shown_outputs(outputs, kind, rows))
    return shown


def _shown_outputs(
    outputs: Outputs, kind: str, rows: Ints, expected: Sequence[str | None] = ()
) -> list[Witness]:
    """The first of some outputs, with what was expected in place of each."""
    first = rows[:WITNESSES_PER_KIND].tolist()
    contents = outputs.topic.read_again(first)
    return [
        Witness(
            kind=kind,
            **place_of(outputs.topic, row),
            expected=wanted,
            actual=text(contents[row][1]),
            more={"key": text(contents[row][0])},
        )
        for row, wanted in zip_longest(first, expected)
    ]


def _keeps(columns: Columns) -> Bools:
    return np.zeros(len(columns["id"]), dtype=np.bool_)


ORACLE = Oracle("check-sensor-status", _keeps, read_output, _judge, ("mf01",))
