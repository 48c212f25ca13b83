"""Query 4, check-machine-power: too little power outside of the planned downtimes.

Streams 1 and 2; mf03 < 8,105, and for every downtime of the record's workplace: time < start or
time > end. In other words: an anti join with the downtimes that contain the record's time.
"""

import time
from typing import TYPE_CHECKING

from espbench.names import find_query
from queries.batches import Around, Handler
from queries.definition import Batched, Definition, Inputs, Streamed
from queries.engine import Engine
from queries.source import answer_value, sensor_records

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MF03_LIMIT = 8_105
TABLE = "workplace"
# Of the time that a table may be old: reading it takes a part of the rest.
REREAD_AFTER = 0.7


def low_power(inputs: Inputs) -> "DataFrame":
    """Records of both machines with too little power: time, workplace, answer."""
    one, two = (sensor_records(inputs.streams[stream], stream=stream) for stream in (1, 2))
    both = one.unionByName(two)
    return both.where(both.mf03 < MF03_LIMIT).select("timestamp", "workplace", answer_value())


def unplanned(records: "DataFrame", downtimes: "DataFrame") -> "DataFrame":
    """The records that no downtime of their workplace contains."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

    planned = (records.workplace == downtimes.wp_id) & records.timestamp.between(
        _instant(downtimes.wp_downtime_start), _instant(downtimes.wp_downtime_end)
    )
    return records.join(f.broadcast(downtimes), planned, "left_anti").select("value")


def _instant(column: "Column") -> "Column":
    """The table holds UTC without zone, which is the session's zone."""
    return column.cast("timestamp")


def answers(inputs: Inputs) -> "DataFrame":
    """Spark reads the table whenever it plans a batch, in real-time mode every few seconds."""
    return unplanned(low_power(inputs), inputs.lookup(TABLE))


def with_kept_table(around: Around) -> Handler:
    """The same with a table that is kept as long as it is fresh enough, instead of one a batch."""
    kept: tuple[float, DataFrame] | None = None

    def downtimes() -> "DataFrame":
        nonlocal kept
        now = time.monotonic()
        if kept is None or now - kept[0] > REREAD_AFTER * around.freshness_s:
            table = around.lookup(TABLE)
            kept = now, around.spark.createDataFrame(table.collect(), table.schema)
            around.counters["table_reads"] = around.counters.get("table_reads", 0) + 1
        return kept[1]

    def handle(batch: "DataFrame", _number: int) -> None:
        around.write(unplanned(batch, downtimes()))

    return handle


_BATCHED = Batched(low_power, with_kept_table)

DEFINITION = Definition(
    query=find_query("check-machine-power"),
    ways={
        Engine.REAL_TIME: Streamed(answers),
        Engine.MICRO_BATCH: _BATCHED,
        Engine.AVAILABLE_NOW: _BATCHED,
    },
)
