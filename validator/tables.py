r"""Captured tables: CSV with a header, or Parquet, to checked columns.

Integers become int64, times become microseconds since the epoch (int64), nulls stay null. In CSV an
empty field or `\N` is null, times are ISO 8601, without a zone they are UTC. A row that cannot be
read is named and left out: the others may still prove something.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from validator.csvfile import CsvRows, read_csv
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
# A column of another kind need not be read to its end to know that.
MAX_BAD_ROWS = 20
_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"


def read_table(name: str, path: Path) -> Table:
    """A table with the columns of `TABLES`; absent optional columns are null."""
    evidence = Evidence(str(path))
    try:
        raw = _read(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        evidence.add(f"not readable as a table: {' '.join(str(error).split())[:200]}")
        return Table(None, evidence)
    for line in raw.torn_lines:
        evidence.add("torn: this line is no whole row", line)
    columns = {}
    good = np.ones(raw.table.num_rows, dtype=np.bool_)
    for column, wanted in TABLES[name].items():
        kind, optional = wanted.rstrip("?"), wanted.endswith("?")
        if column not in raw.table.column_names:
            if not optional:
                evidence.add(f"not the table {name}: no column {column}")
                return Table(None, evidence)
            columns[column] = pa.chunked_array([pa.nulls(raw.table.num_rows, pa.int64())])
            continue
        convert = _integers if kind == INTEGER else _times
        try:
            found, bad = _converted(raw.table.column(column), convert)
        except TypeError as error:
            evidence.add(f"column {column} does not hold what it should ({kind}): {error}")
            return Table(None, evidence)
        for row, reason in bad.items():
            good[row] = False
            text = f"column {column} does not hold what it should ({kind}): {reason}"
            evidence.add(text, raw.line(row))
        if found is None:
            return Table(None, evidence)
        columns[column] = found
    rows = pa.table(columns)
    return Table(rows if good.all() else rows.filter(pa.array(good)), evidence)


def _read(path: Path) -> CsvRows:
    with path.open("rb") as file:
        parquet = file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    return CsvRows(pq.read_table(path)) if parquet else read_csv(path)


Convert = Callable[[Any], Any]


def _converted(column: Any, convert: Convert) -> tuple[Any | None, dict[int, str]]:
    """The column, null in rows that cannot be converted, and why each of these cannot.

    No column where these are too many.
    """
    try:
        return convert(column), {}
    except (pa.ArrowException, ValueError):
        bad: dict[int, str] = {}
        parts = _parts(column, convert, 0, bad)
    return (None if len(bad) > MAX_BAD_ROWS else pa.chunked_array(parts, pa.int64())), bad


def _parts(column: Any, convert: Convert, begin: int, bad: dict[int, str]) -> list[Any]:
    """Halve the column until what cannot be converted stands alone."""
    if len(bad) > MAX_BAD_ROWS:
        return []
    try:
        return list(convert(column).chunks)
    except (pa.ArrowException, ValueError) as error:
        if len(column) > 1:
            half = len(column) // 2
            parts = _parts(column.slice(0, half), convert, begin, bad)
            return parts + _parts(column.slice(half), convert, begin + half, bad)
        bad[begin] = " ".join(str(error).split())[:200]
        return [pa.nulls(1, pa.int64())]


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
        raise TypeError(f"{kind} is not a time")
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
