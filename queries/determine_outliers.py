"""Query 2, determine-outliers: stochastic outlier selection in count windows of 500 records.

A window is 500 well-formed records of one partition in the order of their offsets, so it depends on
nothing but the topic. Records that do not fill a window yet are left to the next micro-batch.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from espbench.names import find_query
from queries.batches import Around, Handler
from queries.definition import Batched, Definition, Inputs
from queries.engine import Engine
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

_BATCHED = Batched(points, outliers, most_records=MOST_RECORDS)

DEFINITION = Definition(
    query=find_query("determine-outliers"),
    ways={Engine.MICRO_BATCH: _BATCHED, Engine.AVAILABLE_NOW: _BATCHED},
)
