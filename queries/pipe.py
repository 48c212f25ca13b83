"""Python in the midst of real-time mode: what a task pipes through a function of ours.

Spark hands a task's records to a Python worker in small Arrow batches as they come, and writes what
the worker yields, without waiting for the end of an interval. Every partition has a worker of its
own, and an interval is one call: from its first record to its checkpoint.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from queries.carry import Carry

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext
    from pyspark.sql import DataFrame

    from espbench.services.endpoints import DatabaseAddress
    from schema.contract import Database

# Called in a worker with the records of an interval; yields answers. Its effects are durable at its
# end.
Pipe = Callable[["Place", Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# A worker gets so many records at once: fewer cost work, more wait for one another.
RECORDS_AT_ONCE = 16
# Spark's buffers on the way to a worker and back, less than such a batch of any query: it is sent
# on only when the buffer is full.
BUFFER_BYTES = 256


@dataclass(frozen=True, slots=True)
class Place:
    """What a worker may use; it is pickled to get there."""

    directory: Path
    address: "DatabaseAddress | None"
    counts: "Accumulator[dict[str, int]]"

    def carry(self, part: str, empty: pa.Table) -> Carry:
        """What the intervals leave to one another, in this part."""
        return Carry(self.directory / "carry" / part, empty)

    def database(self) -> "Database":
        """A database of the worker's own."""
        from schema.registry import open_database  # noqa: PLC0415 - an extra, and heavy

        if self.address is None:
            raise TypeError("this query names no table")
        return open_database(self.address)

    @staticmethod
    def interval() -> int:
        """The number of the interval that goes on."""
        from pyspark import TaskContext  # noqa: PLC0415 - an extra, and heavy

        context = TaskContext.get()
        number = context.getLocalProperty("streaming.sql.batchId") if context else None
        if number is None:
            raise RuntimeError("this is no task of a streaming query")
        return int(number)


def piped(records: "DataFrame", pipe: Pipe, place: Place) -> "DataFrame":
    """The answers (`value`) that the workers yield."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pipe(place, batches)

    return records.mapInArrow(work, "value string")


def shared_counts(context: "SparkContext", counts: dict[str, int]) -> "Accumulator[dict[str, int]]":
    """Numbers that workers add to; `counts` has their sums, as of the intervals that ended."""
    from pyspark.accumulators import AccumulatorParam  # noqa: PLC0415 - an extra, and heavy

    class Sums(AccumulatorParam[dict[str, int]]):
        def zero(self, value: dict[str, int]) -> dict[str, int]:  # noqa: ARG002 - Spark's signature
            return {}

        def addInPlace(self, value1: dict[str, int], value2: dict[str, int]) -> dict[str, int]:  # noqa: N802 - Spark's name
            for name, number in value2.items():
                value1[name] = value1.get(name, 0) + number
            return value1

    param: Any = Sums()
    return context.accumulator(counts, param)
