"""Query 2, determine-outliers: stochastic outlier selection in count windows of 500 records.

A window is 500 well-formed records of one partition in the order of their offsets, so it depends on
nothing but the topic. Records that do not fill a window yet are left to the next micro-batch or
interval.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from espbench.names import find_query
from queries.batches import Around, Handler
from queries.carry import Carry
from queries.definition import Batched, Definition, Inputs, Piped
from queries.engine import Engine
from queries.pipe import Place
from queries.source import answer_value, sensor_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW = 500
PERPLEXITY = 30.0
THRESHOLD = 0.5

RECORDS = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("mf01", pa.int64()),
        ("mf02", pa.int64()),
        ("value", pa.string()),
    ]
)


def points(inputs: Inputs) -> "DataFrame":
    """Every well-formed record: its place, its point and its `<id>;<line>`."""
    records = sensor_records(inputs.streams[1], stream=1)
    return records.select("partition", "offset", "mf01", "mf02", answer_value())


def outliers(around: Around) -> Handler:
    """Answer all windows that a batch completes."""
    carry = around.carry(RECORDS.empty_table())

    def handle(batch: "DataFrame", number: int) -> None:
        records = pa.concat_tables([carry.before(number), batch.toArrow().cast(RECORDS)])
        windows, rest = split(records)
        around.write_rows([(None, value) for window in windows for value in answers(window)])
        carry.save(number, rest)

    return handle


def windows_of(place: Place, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Answer every window as soon as it is full; what is left over waits for the next interval."""
    interval = place.interval()
    waiting: dict[int, Waiting] = {}
    for batch in batches:
        partition = batch["partition"][0].as_py()
        if partition not in waiting:
            carry = place.carry(str(partition), RECORDS.empty_table())
            waiting[partition] = Waiting(carry, interval, batch["offset"][0].as_py())
        for window in waiting[partition].add(batch):
            yield pa.record_batch({"value": pa.array(answers(window), pa.string())})
    for each in waiting.values():
        each.save()


class Waiting:
    """The records of one partition that fill no window yet."""

    def __init__(self, carry: Carry, interval: int, begin: int) -> None:
        self._carry, self._interval = carry, interval
        self._rest = carry.newest_before(interval, begin)
        self._read_to = begin
        self._batches: list[pa.RecordBatch] = []
        self._count = len(self._rest)

    def add(self, batch: pa.RecordBatch) -> list[pa.Table]:
        """The windows that these records, which follow the others, complete."""
        self._batches.append(batch)
        self._count += len(batch)
        self._read_to = batch["offset"][-1].as_py() + 1
        return self._split() if self._count >= WINDOW else []

    def save(self) -> None:
        """Leave the rest to the next interval."""
        self._split()
        self._carry.save(self._interval, self._rest, read_to=self._read_to)

    def _split(self) -> list[pa.Table]:
        new = pa.Table.from_batches(self._batches, RECORDS)
        windows, self._rest = split(pa.concat_tables([self._rest, new]))
        self._batches, self._count = [], len(self._rest)
        return windows


def split(records: pa.Table) -> tuple[list[pa.Table], pa.Table]:
    """The full windows of every partition, and the records that are left over."""
    records = records.sort_by([("partition", "ascending"), ("offset", "ascending")])
    partition = records["partition"].to_numpy()
    begins = np.flatnonzero(np.diff(partition, prepend=-1))
    ends = np.append(begins, len(partition))[1:]
    windows, rest = [], []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        full = (end - begin) // WINDOW
        windows += [records.slice(begin + place * WINDOW, WINDOW) for place in range(full)]
        rest.append(records.slice(begin + full * WINDOW, (end - begin) - full * WINDOW))
    return windows, pa.concat_tables([records.slice(0, 0), *rest]).combine_chunks()


def answers(window: pa.Table) -> list[str]:
    """`<id>;<line>,<probability>` of the window's outliers, in their order."""
    from queries.sos import StochasticOutlierSelection  # noqa: PLC0415 - scikit-learn, an extra

    selection = StochasticOutlierSelection(PERPLEXITY, THRESHOLD)
    probability = selection.predict_probability(
        np.column_stack([window["mf01"].to_numpy(), window["mf02"].to_numpy()])
    )
    chosen = np.flatnonzero(probability >= THRESHOLD)
    values = window["value"].take(chosen).to_pylist()
    return [
        f"{value},{share:.2f}"
        for value, share in zip(values, probability[chosen].tolist(), strict=True)
    ]


# The driver holds their whole lines.
MOST_RECORDS = 500_000

_BATCHED = Batched(points, outliers, most_records=MOST_RECORDS, keeps="rest")

DEFINITION = Definition(
    query=find_query("determine-outliers"),
    ways={
        Engine.REAL_TIME: Piped(points, windows_of, keeps="rest of each partition"),
        Engine.MICRO_BATCH: _BATCHED,
        Engine.AVAILABLE_NOW: _BATCHED,
    },
)
