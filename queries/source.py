"""The source streams: Kafka records, taken apart; what is malformed is counted and left out."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SENSOR_COLUMNS = 57
# 18 digits always fit into 64 bits; a longer number is no integer of this benchmark.
_INTEGER = "-?[0-9]{1,18}"
# Possessive, so that a line that does not match is given up in one pass.
_COLUMN = "[^\\t]*+"
# `<id>;<due_ms>;<line>`: ts, index, mf01, mf02, mf03, then columns nobody reads, then the
# workplace. \A and \z, because $ would let a trailing line break pass.
SENSOR_RECORD = (
    rf"\A[0-9]{{1,18}};{_INTEGER};"
    rf"(?:{_COLUMN}\t){{2}}(?:{_INTEGER}\t){{3}}(?:{_COLUMN}\t){{{SENSOR_COLUMNS - 6}}}{_INTEGER}\z"
)
MF01, MF02, MF03 = 2, 3, 4

# What the query counts on its way, found under this name in the progress of every batch.
OBSERVED = "stream-{}"


def read_stream(spark: "SparkSession", options: Mapping[str, str], topic: str) -> "DataFrame":
    """One source topic as an unbounded table, in Kafka's columns."""
    return spark.readStream.format("kafka").options(**options).option("subscribe", topic).load()


def sensor_records(raw: "DataFrame", *, stream: int) -> "DataFrame":
    """The well-formed records of a sensor stream: Kafka's columns, `text`, `mf01` … `mf03`.

    How many were malformed, and where the first of a batch stood, is observed as `stream-<n>`.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra; pure modules import this one

    # Spark's cast takes any bytes for a string, so their validity is asked for.
    text = f.col("value").cast("string")
    fits = text.rlike(SENSOR_RECORD) & f.is_valid_utf8(text)
    checked = raw.withColumns({"text": text, "well_formed": f.coalesce(fits, f.expr("false"))})
    columns = f.split("text", "\t", MF03 + 2)
    return _only_well_formed(checked, stream).withColumns(
        {
            # try_cast: ANSI mode would stop the query should Spark cast before it filters.
            "mf01": columns[MF01].try_cast("bigint"),
            "mf02": columns[MF02].try_cast("bigint"),
            "mf03": columns[MF03].try_cast("bigint"),
        }
    )


def answer_value() -> "Column":
    """`<id>;<line>`: the record's text without its due time."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    parts = f.split("text", ";", 3)
    return f.concat(parts[0], f.lit(";"), parts[2]).alias("value")


def _only_well_formed(checked: "DataFrame", stream: int) -> "DataFrame":
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    malformed = ~f.col("well_formed")
    observed = checked.observe(
        OBSERVED.format(stream),
        f.count_if(malformed).alias("malformed"),
        f.min(f.when(malformed, f.struct("partition", "offset"))).alias("first_malformed"),
    )
    return observed.where("well_formed")
