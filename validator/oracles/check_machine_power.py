"""Query 4, check-machine-power: mf03 < 8,105 while no downtime is planned, as `<id>;<line>`.

A record's time is its LogAppendTime. It is in a downtime of its workplace if start ≤ time ≤ end.
The borderline is what the system under test may see either way: within a millisecond of a
downtime's start or end, and within the freshness after a change of the workplace's downtimes.
"""

import numpy as np

from validator.expected import Expected, expect_rows
from validator.oracles.base import Inputs, Oracle, Table, id_and_line
from validator.outcome import Outcome
from validator.outputs import sensor_output
from validator.records import Bools, Ints
from validator.recordwise import Case, judge_records
from validator.streams import Columns, Stream

LIMIT = 8_105
NEAR_US = 1_000
NEVER = np.iinfo(np.int64).min
FOR_EVER = np.iinfo(np.int64).max

Downtimes = dict[str, Ints]


def is_low(columns: Columns) -> Bools:
    """The query's condition on the record itself."""
    found: Bools = columns["well_formed"] & (columns["mf03"] < LIMIT)
    return found


def downtimes(table: Table) -> Downtimes | None:
    """The table as columns in microseconds; None where it cannot be used."""
    rows = table.rows
    if rows is None:
        return None
    needed = ("wp_id", "wp_downtime_start", "wp_downtime_end")
    if any(rows.column(name).null_count for name in needed):
        table.evidence.add("a downtime without workplace, start or end")
        return None
    return {
        "workplace": rows.column("wp_id").to_numpy(),
        "start": rows.column("wp_downtime_start").to_numpy(),
        "end": rows.column("wp_downtime_end").to_numpy(),
        "valid_from": rows.column("valid_from").fill_null(NEVER).to_numpy(),
        "valid_to": rows.column("valid_to").fill_null(FOR_EVER).to_numpy(),
    }


def in_downtime(
    workplace: Ints, time_us: Ints, planned: Downtimes, freshness_us: int
) -> tuple[Bools, Bools]:
    """For each record: whether it is in a downtime, and whether that is borderline."""
    down = np.zeros(len(time_us), dtype=np.bool_)
    borderline = np.zeros(len(time_us), dtype=np.bool_)
    for number in np.unique(workplace):
        here = np.flatnonzero(workplace == number)
        time = time_us[here]
        for row in np.flatnonzero(planned["workplace"] == number):
            start, end = planned["start"][row], planned["end"][row]
            since, until = planned["valid_from"][row], planned["valid_to"][row]
            valid = (since <= time) & (time < until)
            down[here] |= valid & (start <= time) & (time <= end)
            near = (np.abs(time - start) <= NEAR_US) | (np.abs(time - end) <= NEAR_US)
            borderline[here] |= near & valid
            for change in {int(since), int(until)} - {NEVER, FOR_EVER}:
                borderline[here] |= (change - NEAR_US <= time) & (time <= change + freshness_us)
    return down, borderline


def expect_either(streams: list[Stream]) -> Expected:
    """Every low record, all of them optional: what can be said while nobody knows the downtimes."""
    low = [is_low(stream.columns) for stream in streams]
    return expect_rows(streams, low, low)


def expect(
    streams: list[Stream], planned: Downtimes, freshness_s: float, *, all_planned: bool = True
) -> Expected:
    """Low records outside of downtimes, those at the borderline marked as optional.

    All of them are where more downtimes may have been planned than are known.
    """
    chosen, optional = [], []
    for stream in streams:
        low = is_low(stream.columns)
        rows = np.flatnonzero(low)
        down, borderline = in_downtime(
            stream.at("workplace", rows),
            stream.topic.places.timestamp_ms.at(rows) * 1_000,
            planned,
            round(freshness_s * 1_000_000),
        )
        maybe = np.zeros(len(stream), dtype=np.bool_)
        maybe[rows] = borderline | (not all_planned)
        low[rows] = ~down | borderline
        chosen.append(low)
        optional.append(maybe)
    return expect_rows(streams, chosen, optional)


def _judge(inputs: Inputs) -> Outcome:
    outputs = inputs.outputs
    assert outputs is not None  # noqa: S101 - this query has a sink
    table = inputs.tables.get("workplace")
    planned = downtimes(table) if table else None
    reasons = []
    all_planned = table is not None and planned is not None and table.evidence.complete
    if not all_planned:
        reasons.append("without the downtimes nobody knows which answers had to come")
    if not all(stream.topic.stamped for stream in inputs.streams):
        reasons.append("without LogAppendTime it is not known what was in a downtime")
        planned = None
    outcome = judge_records(
        Case(
            streams=inputs.streams,
            expected=expect_either(inputs.streams)
            if planned is None
            else expect(inputs.streams, planned, inputs.freshness_s, all_planned=all_planned),
            outputs=outputs,
            plausible=outputs.columns["has_identity"] & (outputs.columns["mf03"] < LIMIT),
            exactly_once=inputs.exactly_once,
            shown=id_and_line,
        )
    )
    outcome.reasons += reasons
    return outcome


ORACLE = Oracle("check-machine-power", is_low, sensor_output, _judge, ("mf03",))
