"""Verdict, latencies and lag as files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from espbench.errors import MachineError
from espbench.paths import make_dir, ordinary_file
from validator.latency import elapsed_ms
from validator.outcome import UNKNOWN_MS
from validator.records import Bools
from validator.verdict import Verdict


def store(verdict: Verdict, directory: Path) -> None:
    """Write `verdict-<query>.json`, `latencies-<query>.parquet` and `lag-<query>.parquet`."""
    make_dir(directory)
    _write(
        directory / f"verdict-{verdict.query or 'unknown'}.json",
        lambda path: path.write_text(
            json.dumps(verdict.document(), indent=2, allow_nan=False) + "\n", encoding="utf-8"
        ),
    )
    if verdict.query is None:
        return
    latencies = latency_table(verdict)
    _write(
        directory / f"latencies-{verdict.query}.parquet",
        lambda path: pq.write_table(latencies, path, compression="zstd"),
    )
    lag = lag_table(verdict)
    _write(
        directory / f"lag-{verdict.query}.parquet",
        lambda path: pq.write_table(lag, path, compression="zstd"),
    )


def latency_table(verdict: Verdict) -> pa.Table:
    """One row per matched output; empty where the latency is not to be had."""
    answers = verdict.answers
    rows = answers.matched if verdict.latency else np.zeros(len(answers), dtype=np.bool_)
    after = verdict.after_warmup if verdict.latency else rows
    due_ms = answers.due_ms[rows]
    known = due_ms != UNKNOWN_MS
    given_ms, owed_ms = answers.given_ms[rows], answers.owed_ms[rows]
    return pa.table(
        {
            "stream": answers.stream[rows].astype(np.int8),
            "partition": answers.partition[rows].astype(np.int32),
            "offset": answers.offset[rows],
            "id": answers.id[rows],
            "in_ms": owed_ms,
            "out_ms": given_ms,
            "due_ms": _masked(due_ms, known),
            "latency_ms": elapsed_ms(owed_ms, given_ms),
            "end_to_end_ms": _masked(elapsed_ms(np.where(known, due_ms, 0), given_ms), known),
            "after_warmup": after[rows],
        }
    )


def lag_table(verdict: Verdict) -> pa.Table:
    """One row per second."""
    lag = verdict.lag
    nothing = np.zeros(0, dtype=np.int64)
    return pa.table(
        {
            "time_ms": lag.time_ms if lag else nothing,
            "owed": lag.owed if lag else nothing,
            "given": lag.given if lag else nothing,
            "lag": lag.lag if lag else nothing,
            "judged": lag.judged if lag else nothing.astype(np.bool_),
        }
    )


def _masked(values: npt.NDArray[Any], known: Bools) -> pa.Array:
    return pa.array(values, mask=~known)


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside, then rename: nobody sees half a file."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        ordinary_file(path)
        write(partial)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise MachineError(
            f"cannot write {path}: {error.strerror or error}", "check disk and permissions"
        ) from error
