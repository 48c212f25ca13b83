"""What a query file provides: the contract between one query and everything around it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from espbench.names import Query
from queries.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a query may read: the source streams by number, as Kafka delivers them.

    A stream has Kafka's columns: `key`, `value` (binary, null for a tombstone), `topic`,
    `partition`, `offset`, `timestamp` (LogAppendTime).
    """

    streams: "Mapping[int, DataFrame]"


@dataclass(frozen=True, slots=True)
class Definition:
    """One runnable query.

    `answers` turns the inputs into the records of the sink: a column `value` (string or binary)
    and, where the query has keys, `key`. It starts nothing and reads nothing by itself.
    `engines` are the execution modes that give right answers, the fastest first.
    """

    query: Query
    engines: tuple[Engine, ...]
    answers: "Callable[[Inputs], DataFrame]"
