"""What surrounds the queries that take over after Spark has read a micro-batch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from queries.carry import Carry
from queries.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from schema.contract import Database

# Called with a batch's records and number; on return all its effects are durable.
Handler = Callable[["DataFrame", int], None]


@dataclass(frozen=True)
class Around:
    """What a handler may use.

    `partitions` are the partitions of the source topics; `freshness_s` is how old a table that
    was read may be; `counters` are numbers for the query's report.
    """

    spark: "SparkSession"
    bootstrap_servers: str
    partitions: Mapping[str, int]
    sink_options: Mapping[str, str]
    lookup: "Callable[[str], DataFrame]"
    database: "Callable[[], Database]"
    freshness_s: float
    directory: Path
    counters: dict[str, int]

    def carry(self, empty: pa.Table) -> Carry:
        """What the handler's batches leave to one another."""
        return Carry(self.directory / "carry", empty)

    def write(self, answers: "DataFrame") -> None:
        """Write answers (`value`, perhaps `key`) to the sink; they are acknowledged on return."""
        answers.write.format("kafka").options(**self.sink_options).save()

    def write_rows(self, records: Sequence[tuple[str | None, str]]) -> None:
        """Write keys and values of answers that this process holds; acknowledged on return."""
        if records:
            self._sink.write(records)

    @cached_property
    def _sink(self) -> Sink:
        return Sink(self.bootstrap_servers, self.sink_options["topic"])
