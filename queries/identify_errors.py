"""Query 3, identify-errors: the records of stream 1 whose mf01 exceeds the threshold."""

from typing import TYPE_CHECKING

from espbench.names import find_query
from queries.definition import Definition, Inputs, Streamed
from queries.engine import Engine
from queries.source import answer_value, sensor_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MF01_LIMIT = 14_963


def answers(inputs: Inputs) -> "DataFrame":
    """`<id>;<line>` of every well-formed record with mf01 > 14,963."""
    records = sensor_records(inputs.streams[1], stream=1)
    return records.where(records.mf01 > MF01_LIMIT).select(answer_value())


DEFINITION = Definition(
    query=find_query("identify-errors"),
    ways=dict.fromkeys(Engine.fastest_first(), Streamed(answers)),
)
