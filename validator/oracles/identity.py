"""Identity: every record of stream 1 comes out as it went in, malformed ones as well."""

import numpy as np
import pyarrow as pa

from validator.expected import Expected, expect_rows
from validator.fingerprints import whole_values
from validator.oracles.base import Inputs, Oracle
from validator.outcome import Outcome
from validator.outputs import identity_columns
from validator.records import Bools, RawBytes
from validator.recordwise import Case, judge_records
from validator.streams import Columns, Stream


def expect(streams: list[Stream]) -> Expected:
    """Every record, unchanged."""
    return expect_rows(streams, [np.ones(len(stream), dtype=np.bool_) for stream in streams])


def _keeps(columns: Columns) -> Bools:
    return np.ones(len(columns["id"]), dtype=np.bool_)


def _read_output(_keys: pa.Array, values: pa.Array) -> Columns:
    return identity_columns(RawBytes.of(values), fields=2) | {"text": whole_values(values)}


def _judge(inputs: Inputs) -> Outcome:
    outputs = inputs.outputs
    assert outputs is not None  # noqa: S101 - this query has a sink
    return judge_records(
        Case(
            streams=inputs.streams,
            expected=expect(inputs.streams),
            outputs=outputs,
            # Whatever came out may have gone in.
            plausible=np.ones(len(outputs), dtype=np.bool_),
            exactly_once=inputs.exactly_once,
            shown=lambda value, _row: value,
            by_value=True,
        )
    )


ORACLE = Oracle("identity", _keeps, _read_output, _judge, answering=whole_values)
