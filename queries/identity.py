"""Query 0, identity: every record of stream 1, as it came. The baseline of all others."""

from typing import TYPE_CHECKING

from espbench.names import find_query
from queries.definition import Definition, Inputs, Streamed
from queries.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def answers(inputs: Inputs) -> "DataFrame":
    """The input values, byte by byte: malformed ones and tombstones too."""
    return inputs.streams[1].select("value")


DEFINITION = Definition(
    query=find_query("identity"),
    ways=dict.fromkeys(Engine.fastest_first(), Streamed(answers)),
)
