"""Query 1, check-sensor-status: average, minimum, maximum and count of mf01, second by second.

Two ways. `updates` is Spark's own windowed aggregation in real-time mode: every record gives a
better answer for its window, the last of which is right. `final` gives one answer per window: the
micro-batch that sees every partition beyond the window's end writes it, without waiting for a
watermark to be carried into one more batch.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from espbench.names import find_query
from queries.batches import Around, Handler
from queries.definition import UPDATES, Batched, Definition, Inputs, Streamed
from queries.engine import Engine
from queries.source import sensor_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW_MS = 1_000
# A partition without records holds windows back no longer than this. A batch reads all partitions
# to their ends, so nothing is missed; what came later still would be corrected, not dropped.
IDLE_MS = 2_000
# How long a window's sums are kept for that.
KEPT_MS = 600_000
# Sums are kept in two halves, high * 2^32 + low: ten of the largest values would not fit into one.
HALF_BITS = 32
LOW_HALF = (1 << HALF_BITS) - 1

WINDOWS = pa.schema(
    [
        ("start_ms", pa.int64()),
        ("high", pa.int64()),
        ("low", pa.int64()),
        ("min", pa.int64()),
        ("max", pa.int64()),
        ("count", pa.int64()),
        ("answered", pa.bool_()),
        # Not windows but partitions: up to which time each was read, in `start_ms`.
        ("partition", pa.int32()),
    ]
)


def updates(inputs: Inputs) -> "DataFrame":
    """A better answer for every record."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

    records = sensor_records(inputs.streams[1], stream=1)
    by_window = (
        records.withWatermark("timestamp", f"{KEPT_MS} milliseconds")
        .groupBy(f.window("timestamp", f"{WINDOW_MS} milliseconds"))
        .agg(
            f.sum(f.shiftright("mf01", HALF_BITS)).alias("high"),
            f.sum(f.col("mf01").bitwiseAND(LOW_HALF)).alias("low"),
            f.min("mf01").alias("min"),
            f.max("mf01").alias("max"),
            f.count("*").alias("count"),
        )
    )
    # Both halves are exact as doubles, so that their sum is rounded once.
    average = (f.col("high") * float(1 << HALF_BITS) + f.col("low")) / f.col("count")
    return by_window.select(
        f.unix_millis("window.start").cast("string").alias("key"),
        f.format_string("%.6f,%d,%d,%d", average, "min", "max", "count").alias("value"),
    )


def measurements(inputs: Inputs) -> "DataFrame":
    """Of every record its partition, time and mf01: 20 bytes, summed up by the driver."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

    return sensor_records(inputs.streams[1], stream=1).select(
        "partition", f.unix_millis("timestamp").alias("time_ms"), "mf01"
    )


def final(around: Around) -> Handler:
    """One answer per window."""
    carry = around.carry(WINDOWS.empty_table())
    partitions = sum(around.partitions.values())

    def handle(batch: "DataFrame", number: int) -> None:
        windows, seen = merged(carry.before(number), batch.toArrow())
        ready = finished(windows, seen, partitions)
        around.write_rows(answers(windows.filter(ready)))
        carry.save(number, left(windows, ready, seen))

    return handle


def merged(before: pa.Table, batch: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The sums of all windows, those of this batch added; and how far each partition was read.

    A window that was answered and got more records is to be answered again.
    """
    is_window = pc.is_null(before["partition"])
    time_ms, mf01 = batch["time_ms"].to_numpy(), batch["mf01"].to_numpy()
    found = pa.table(
        {
            "start_ms": time_ms - time_ms % WINDOW_MS,
            "high": mf01 >> HALF_BITS,
            "low": mf01 & LOW_HALF,
            "min": mf01,
            "max": mf01,
            "count": np.ones(len(batch), dtype=np.int64),
            "answered": np.zeros(len(batch), dtype=np.bool_),
        }
    )
    ways = {"high": "sum", "low": "sum", "min": "min", "max": "max", "count": "sum"}
    ways["answered"] = "all"
    columns = ["start_ms", *ways]
    both = pa.concat_tables([before.filter(is_window).select(columns), found])
    windows = both.group_by("start_ms", use_threads=False).aggregate(list(ways.items()))
    windows = windows.rename_columns(columns).sort_by("start_ms")
    read = pa.table({"partition": batch["partition"], "start_ms": batch["time_ms"]})
    known = before.filter(pc.invert(is_window)).select(["partition", "start_ms"])
    seen = pa.concat_tables([known, read.cast(known.schema)]).group_by("partition")
    return windows, seen.aggregate([("start_ms", "max")]).rename_columns(["partition", "start_ms"])


def finished(windows: pa.Table, seen: pa.Table, partitions: int) -> pa.Array:
    """Which windows can get no more records, and are not answered yet."""
    times = seen["start_ms"].to_numpy()
    latest = int(times.max(initial=0))
    everywhere = int(times.min()) if len(times) == partitions else 0
    ends = windows["start_ms"].to_numpy() + WINDOW_MS
    over = (ends <= everywhere) | (ends <= latest - IDLE_MS)
    return pa.array(over & ~windows["answered"].to_numpy(zero_copy_only=False))


def answers(windows: pa.Table) -> list[tuple[str, str]]:
    """Key and value of each window's record."""
    return [
        (
            str(each["start_ms"]),
            f"{_sum(each) / each['count']:.6f},{each['min']},{each['max']},{each['count']}",
        )
        for each in windows.to_pylist()
    ]


def _sum(window: dict[str, int]) -> int:
    return (window["high"] << HALF_BITS) + window["low"]


def left(windows: pa.Table, ready: pa.Array, seen: pa.Table) -> pa.Table:
    """What the next batch needs."""
    answered = pc.or_(windows["answered"], ready)
    place = windows.schema.get_field_index("answered")
    windows = windows.set_column(place, "answered", answered)
    oldest = max(seen["start_ms"].to_pylist(), default=0) - KEPT_MS
    windows = windows.filter(pc.or_(pc.invert(answered), pc.greater(windows["start_ms"], oldest)))
    return (
        pa.concat_tables([windows, seen], promote_options="default")
        .select(WINDOWS.names)
        .cast(WINDOWS)
    )


_FINAL = Batched(measurements, final, keeps="windows")

DEFINITION = Definition(
    query=find_query("check-sensor-status"),
    ways={
        Engine.REAL_TIME: Streamed(updates, emits=UPDATES, keeps="aggregates"),
        Engine.MICRO_BATCH: _FINAL,
        Engine.AVAILABLE_NOW: _FINAL,
    },
)
