"""Samples on disk: a draft that survives a kill, then Parquet, then one file per run."""

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from espbench.paths import ordinary_file

SCHEMA = pa.schema(
    [
        ("time_ms", pa.int64()),
        ("host", pa.string()),
        ("component", pa.string()),
        ("query", pa.string()),
        # 100 is one core.
        ("cpu_percent", pa.float64()),
        ("rss_bytes", pa.int64()),
        # Rates are per second.
        ("read_bytes", pa.float64()),
        ("written_bytes", pa.float64()),
        ("net_sent_bytes", pa.float64()),
        ("net_received_bytes", pa.float64()),
        ("threads", pa.int32()),
        ("voluntary_switches", pa.float64()),
        ("involuntary_switches", pa.float64()),
        ("gc_ms", pa.float64()),
        ("heap_bytes", pa.int64()),
        ("context_switches", pa.float64()),
        ("steal_percent", pa.float64()),
        ("processes_percent", pa.float64()),
    ]
)
_KEYS = ["time_ms", "host", "component", "query"]
_ORDER = [("time_ms", "ascending"), ("host", "ascending"), ("component", "ascending")]
_FLUSH_ROWS = 50


class SampleWriter:
    """Gathers rows into `path`.

    Until the end they stand in a draft beside it, an Arrow stream: unlike Parquet it can be read as
    far as it goes, so that a kill costs the last seconds only.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.draft = draft_of(path)
        self._rows: list[dict[str, Any]] = []
        self._stream = pa.ipc.new_stream(self.draft, SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Keep these rows; every few seconds they go to disk."""
        self._rows += rows
        if len(self._rows) >= _FLUSH_ROWS:
            self._flush()

    def close(self) -> None:
        """Turn the draft into the file."""
        self._flush()
        self._stream.close()
        write_table(read_draft(self.draft), self.path)
        self.draft.unlink()

    def _flush(self) -> None:
        if self._rows:
            self._stream.write_batch(pa.RecordBatch.from_pylist(self._rows, schema=SCHEMA))
            self._rows = []


def draft_of(path: Path) -> Path:
    """Where the samples of `path` stand until it is whole."""
    return path.with_name(f".{path.stem}.draft")


def read_draft(draft: Path) -> pa.Table:
    """What a draft holds, up to where it breaks off."""
    batches = []
    try:
        with pa.OSFile(str(draft)) as file, pa.ipc.open_stream(file) as stream:
            batches.extend(stream)
    except (pa.ArrowInvalid, OSError):
        # Torn by a kill: what stands before the tear is good.
        pass
    return pa.Table.from_batches(batches, schema=SCHEMA)


def write_table(table: pa.Table, path: Path) -> None:
    """Write Parquet so that a reader sees the old file or the whole new one."""
    path = ordinary_file(path)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        pq.write_table(table, part, compression="zstd")
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def merge_system(run_dir: Path) -> Path | None:
    """Merge `system-*.parquet` of a run into `system.parquet`, by time; None where nothing is.

    Drafts of monitors that were killed are merged too. The parts are removed afterwards; what an
    earlier call merged stays, and nothing is there twice.
    """
    whole = run_dir / "system.parquet"
    parts = sorted(run_dir.glob("system-*.parquet"))
    drafts = sorted(run_dir.glob(".system*.draft"))
    if not parts and not drafts:
        return whole if whole.exists() else None
    earlier = [whole] if whole.exists() else []
    tables = [pq.read_table(path, schema=SCHEMA) for path in earlier + parts]
    merged = pa.concat_tables([*tables, *map(read_draft, drafts)])
    values = [name for name in SCHEMA.names if name not in _KEYS]
    # Calls that were cut off between writing and removing leave rows both here and there.
    single = merged.group_by(_KEYS, use_threads=False).aggregate(
        [(name, "first") for name in values]
    )
    columns = [single[name if name in _KEYS else f"{name}_first"] for name in SCHEMA.names]
    table = pa.Table.from_arrays(columns, schema=SCHEMA)
    write_table(table.sort_by(_ORDER), whole)
    for path in parts + drafts:
        path.unlink()
    return whole
