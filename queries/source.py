"""The source streams: Kafka records, taken apart; what is malformed is counted and left out."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SENSOR_COLUMNS = 57
# The stream of production times; the others are sensors.
PRODUCTION_TIMES = 3
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
# `<id>;<due_ms>;<o_id>\t<ol_number>\t<pol_number>\t<is_end>`
PRODUCTION_TIME = rf"\A[0-9]{{1,18}};{_INTEGER};(?:{_INTEGER}\t){{3}}(?:-?0{{1,18}}|0{{0,17}}1)\z"

# What the query counts on its way, found under this name in the progress of every batch.
OBSERVED = "stream-{}"


def read_stream(spark: "SparkSession", options: Mapping[str, str], topic: str) -> "DataFrame":
    """One source topic as an unbounded table, in Kafka's columns."""
    return spark.readStream.format("kafka").options(**options).option("subscribe", topic).load()


def sensor_records(raw: "DataFrame", *, stream: int) -> "DataFrame":
    """The well-formed records of a sensor stream.

    Kafka's columns, `text`, `mf01` … `mf03`, `workplace`.

    How many were malformed, and where they stood, is observed as `stream-<n>`.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra; pure modules import this one

    columns = f.split("text", "\t", MF03 + 2)
    return _well_formed(raw, SENSOR_RECORD, stream).withColumns(
        {
            # try_cast: ANSI mode would stop the query should Spark cast before it filters.
            "mf01": columns[MF01].try_cast("bigint"),
            "mf02": columns[MF02].try_cast("bigint"),
            "mf03": columns[MF03].try_cast("bigint"),
            "workplace": f.substring_index("text", "\t", -1).try_cast("bigint"),
        }
    )


def production_times(raw: "DataFrame", *, stream: int = 3) -> "DataFrame":
    """The well-formed production times: `line` as the table's columns want it, `largest_key`.

    `largest_key` is the largest of its keys by magnitude, which may be no number of the table.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    columns = f.split(f.split("text", ";", 3)[2], "\t")
    fields = [columns[place].try_cast("bigint") for place in range(4)]
    return _well_formed(raw, PRODUCTION_TIME, stream).select(
        f.concat_ws("\t", *fields).alias("line"),
        f.greatest(*(f.abs(field) for field in fields)).alias("largest_key"),
    )


def answer_value() -> "Column":
    """`<id>;<line>`: the record's text without its due time."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    parts = f.split("text", ";", 3)
    return f.concat(parts[0], f.lit(";"), parts[2]).alias("value")


def malformed(raw: "DataFrame", pattern: str) -> "DataFrame":
    """The records that a query leaves out."""
    return _checked(raw, pattern).where("not well_formed")


def _checked(raw: "DataFrame", pattern: str) -> "DataFrame":
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    # Spark's cast takes any bytes for a string, so their validity is asked for.
    text = f.col("value").cast("string")
    fits = text.rlike(pattern) & f.is_valid_utf8(text)
    return raw.withColumns({"text": text, "well_formed": f.coalesce(fits, f.expr("false"))})


def _well_formed(raw: "DataFrame", pattern: str, stream: int) -> "DataFrame":
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    malformed = ~f.col("well_formed")
    observed = _checked(raw, pattern).observe(
        OBSERVED.format(stream),
        f.count_if(malformed).alias("malformed"),
        # Of a well-formed record it is null, which the list leaves out.
        f.collect_list(f.when(malformed, f.struct("partition", "offset"))).alias("set_aside"),
    )
    return observed.where("well_formed")
