r"""Captured tables: CSV with a header, or Parquet, to checked columns.

Integers become int64, times become microseconds since the epoch (int64), nulls stay null. In CSV an
empty field or `\N` is null, times are ISO 8601, without a zone they are UTC.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from validator.evidence import Evidence
from validator.oracles.base import Table
from validator.parquetfile import PARQUET_MAGIC

INTEGER, TIME = "integer", "time"
# Table to column to kind; a question mark marks what need not be there.
TABLES: dict[str, dict[str, str]] = {
    "workplace": {
        "wp_id": INTEGER,
        "wp_dt_id": INTEGER + "?",
        "wp_downtime_start": TIME,
        "wp_downtime_end": TIME,
        "valid_from": TIME + "?",
        "valid_to": TIME + "?",
    },
    "production_order_line": {
        "pol_o_id": INTEGER,
        "pol_ol_number": INTEGER,
        "pol_number": INTEGER,
        "pol_start_ts": TIME,
        "pol_end_ts": TIME,
        "start_commit_ts": TIME + "?",
        "end_commit_ts": TIME + "?",
    },
}
_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"


def read_table(name: str, path: Path) -> Table:
    """A table with the columns of `TABLES`; absent optional columns are null."""
    evidence = Evidence(str(path))
    try:
        raw = _read(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        evidence.add(f"not readable as a table: {' '.join(str(error).split())[:200]}")
        return Table(None, evidence)
    columns = {}
    for column, wanted in TABLES[name].items():
        kind, optional = wanted.rstrip("?"), wanted.endswith("?")
        if column not in raw.column_names:
            if not optional:
                evidence.add(f"not the table {name}: no column {column}")
                return Table(None, evidence)
            columns[column] = pa.chunked_array([pa.nulls(raw.num_rows, pa.int64())])
            continue
        try:
            convert = _integers if kind == INTEGER else _times
            columns[column] = convert(raw.column(column))
        except (pa.ArrowException, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            evidence.add(f"column {column} does not hold what it should ({kind}): {reason}")
            return Table(None, evidence)
    return Table(pa.table(columns), evidence)


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        parquet = file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    if parquet:
        return pq.read_table(path)
    with pa.csv.open_csv(path) as head:
        names = head.schema.names
    return pa.csv.read_csv(
        path,
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=["", "\\N"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )


def _integers(column: Any) -> Any:
    column = _decoded(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.utf8_trim_whitespace(column)
    return column.cast(pa.int64())


def _decoded(column: Any) -> Any:
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def _times(encoded: Any) -> Any:
    column = _decoded(encoded)
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.int64())
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us")).cast(pa.int64())
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise ValueError(f"{kind} is not a time")
    trimmed = pc.utf8_trim_whitespace(column)
    zoned = pc.match_substring_regex(trimmed, r"[T ][0-9:.]+" + _ZONE)
    plain = _parse(pc.if_else(zoned, None, trimmed), pa.timestamp("us"), pa.timestamp("ns"))
    with_zone = _parse(
        pc.if_else(zoned, _whole_zone(trimmed), None),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ns", "UTC"),
    )
    return pc.coalesce(plain, with_zone)


def _whole_zone(texts: Any) -> Any:
    """PostgreSQL writes a zone of whole hours as `+00`; ISO 8601 wants the minutes."""
    return pc.replace_substring_regex(texts, r"([+-][0-9]{2})$", r"\1:00")


def _parse(texts: Any, coarse: Any, fine: Any) -> Any:
    try:
        return texts.cast(coarse).cast(pa.int64())
    except pa.ArrowInvalid:
        # More than six decimals: read them all, then leave those below a microsecond.
        return texts.cast(fine).cast(coarse, safe=False).cast(pa.int64())
