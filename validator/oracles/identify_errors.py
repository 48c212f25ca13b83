"""Query 3, identify-errors: records of stream 1 with mf01 > 14,963, as `<id>;<line>`."""

from validator.expected import Expected, expect_rows
from validator.oracles.base import Inputs, Oracle, id_and_line
from validator.outcome import Outcome
from validator.outputs import sensor_output
from validator.records import Bools
from validator.recordwise import Case, judge_records
from validator.streams import Columns, Stream

LIMIT = 14_963


def is_error(columns: Columns) -> Bools:
    """The query's condition."""
    found: Bools = columns["well_formed"] & (columns["mf01"] > LIMIT)
    return found


def expect(streams: list[Stream]) -> Expected:
    """The records that are errors."""
    return expect_rows(streams, [is_error(stream.columns) for stream in streams])


def _judge(inputs: Inputs) -> Outcome:
    outputs = inputs.outputs
    assert outputs is not None  # noqa: S101 - this query has a sink
    return judge_records(
        Case(
            streams=inputs.streams,
            expected=expect(inputs.streams),
            outputs=outputs,
            plausible=outputs.columns["has_identity"] & (outputs.columns["mf01"] > LIMIT),
            exactly_once=inputs.exactly_once,
            shown=id_and_line,
        )
    )


ORACLE = Oracle("identify-errors", is_error, sensor_output, _judge, ("mf01",))
