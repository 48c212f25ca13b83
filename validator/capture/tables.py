"""One table to one Parquet file: as it stands in the database now."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from schema.contract import Database

COLUMNS = {
    "workplace": ("wp_id", "wp_dt_id", "wp_downtime_start", "wp_downtime_end"),
    "production_order_line": (
        "pol_o_id",
        "pol_ol_number",
        "pol_number",
        "pol_start_ts",
        "pol_end_ts",
    ),
}
_TIMES = frozenset(
    {"wp_downtime_start", "wp_downtime_end", "pol_start_ts", "pol_end_ts", "commit_ts"}
)
_BATCH = 50_000


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """What `capture.json` says of a table."""

    name: str
    file: str
    columns: list[str]
    rows: int


def capture_table(database: "Database", name: str, directory: Path) -> CapturedTable:
    """Read the columns that the validator needs, from one snapshot, into `<name>.parquet`.

    Where the database can tell commit times, rows of production order lines carry that of their
    last change: the end's, or the start's where there is no end yet. Whether both came in one
    transaction cannot be told afterwards, so that the start of an ended line has none.
    """
    from sqlalchemy import select  # noqa: PLC0415 - an extra

    table = database.table(name)
    wanted: list[Any] = [table.c[column] for column in COLUMNS[name]]
    names = list(COLUMNS[name])
    committed = database.commit_time() if name == "production_order_line" else None
    if committed is not None:
        names.append("commit_ts")
        wanted.append(committed.label("commit_ts"))
    with database.reading() as connection:
        found = connection.execution_options(stream_results=True).execute(select(*wanted))
        batches = [_batch(names, rows) for rows in found.partitions(_BATCH)]
    rows_table = pa.Table.from_batches(batches, schema=_schema(names))
    if committed is not None:
        rows_table = _split_commits(rows_table)
    file = f"{name}.parquet"
    pq.write_table(rows_table, directory / file, compression="zstd", write_page_checksum=True)
    return CapturedTable(name, file, rows_table.column_names, rows_table.num_rows)


def _schema(names: list[str]) -> pa.Schema:
    return pa.schema(
        [(name, pa.timestamp("us") if name in _TIMES else pa.int64()) for name in names]
    )


def _batch(names: list[str], rows: Any) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True))
    schema = _schema(names)
    return pa.record_batch(
        [pa.array(column, type=kind) for column, kind in zip(columns, schema.types, strict=True)],
        schema=schema,
    )


def _split_commits(table: pa.Table) -> pa.Table:
    import pyarrow.compute as pc  # noqa: PLC0415 - only where there are commit times

    commit = table.column("commit_ts")
    started = table.column("pol_start_ts").is_valid()
    ended = table.column("pol_end_ts").is_valid()
    nothing = pa.scalar(None, commit.type)
    start = pc.if_else(pc.and_(started, pc.invert(ended)), commit, nothing)
    end = pc.if_else(ended, commit, nothing)
    return (
        table.drop_columns(["commit_ts"])
        .append_column("start_commit_ts", start)
        .append_column("end_commit_ts", end)
    )
