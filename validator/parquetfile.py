"""Topic files in Parquet: partition, offset, timestamp_ms, key, value."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from validator.batches import LAST_PARTITION, Batch, are_timestamps, numbers
from validator.evidence import Evidence

PARQUET_MAGIC = b"PAR1"
# A batch of this size stays in the processor's cache while it is taken apart.
BATCH_ROWS = 1 << 13
COLUMNS = ("partition", "offset", "timestamp_ms", "key", "value")
REQUIRED = ("partition", "offset", "timestamp_ms", "value")


def read_parquet(path: Path, evidence: Evidence) -> Iterator[Batch]:
    """The records of a file in batches; whatever cannot be read becomes a problem of `evidence`."""
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        evidence.add(f"torn or damaged, not readable as Parquet: {_short(error)}")
        return
    with file:
        if problem := _schema_problem(file.schema_arrow):
            evidence.add(problem)
            return
        present = [name for name in COLUMNS if name in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            try:
                for rows in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=present):
                    if rows.num_rows:
                        yield _batch(rows, evidence)
            except (pa.ArrowException, OSError, ValueError) as error:
                evidence.add(f"row group {group} is damaged: {_short(error)}")


def _schema_problem(schema: Any) -> str | None:
    missing = [name for name in REQUIRED if name not in schema.names]
    if missing:
        return f"a foreign Parquet file: no column {', '.join(missing)}"
    for name in COLUMNS:
        if name not in schema.names:
            continue
        kind = schema.field(name).type
        if name in {"key", "value"}:
            fits = _is_bytes(kind) or pa.types.is_null(kind)
            wanted = "binary"
        else:
            fits = pa.types.is_integer(kind)
            fits |= name == "timestamp_ms" and pa.types.is_timestamp(kind)
            wanted = "an integer"
        if not fits:
            return f"a foreign Parquet file: column {name} is {kind}, not {wanted}"
    return None


def _is_bytes(kind: Any) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_binary(plain)
        or pa.types.is_large_binary(plain)
        or pa.types.is_string(plain)
        or pa.types.is_large_string(plain)
    )


def _batch(rows: Any, evidence: Evidence) -> Batch:
    place = rows.column("partition").is_valid().to_numpy(zero_copy_only=False)
    place &= rows.column("offset").is_valid().to_numpy(zero_copy_only=False)
    partition = numbers(rows.column("partition"))
    offset = numbers(rows.column("offset"))
    good = place & (partition >= 0) & (partition <= LAST_PARTITION) & (offset >= 0)
    if not good.all():
        evidence.add(f"{int((~good).sum()):,} rows without a valid partition and offset")
        kept = rows.filter(pa.array(good))
        return _batch(kept, evidence)
    timestamp = rows.column("timestamp_ms")
    if pa.types.is_timestamp(timestamp.type):
        timestamp = timestamp.cast(pa.timestamp("ms", timestamp.type.tz), safe=False)
    stamps = numbers(timestamp.cast(pa.int64()))
    key = rows.column("key") if "key" in rows.schema.names else pa.nulls(len(rows), pa.binary())
    return Batch(
        partition=partition,
        offset=offset,
        timestamp_ms=stamps,
        key=_binary(key),
        value=_binary(rows.column("value")),
        stamped=are_timestamps(stamps),
    )


def _binary(array: Any) -> Any:
    return array if pa.types.is_binary(array.type) else array.cast(pa.binary())


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
