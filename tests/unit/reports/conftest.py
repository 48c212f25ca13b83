"""Runs made up for reports and comparisons: every file of the run store, small and seeded."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from espbench.config import Settings
from espbench.runs.store import RunDir
from validator.latency import statistics

START_MS = 1_700_000_000_000
SECONDS = 60
RATE = 50
WARMUP_S = 10
MakeRun = Callable[..., RunDir]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Make a run: `make_run("r1", seed=1, slower=1.3)`; `config` by dotted path."""

    def make(
        run_id: str = "r1",
        *,
        seed: int = 1,
        slower: float = 1.0,
        queries: tuple[str, ...] = ("identify-errors", "persist-processing-times"),
        config: dict[str, Any] | None = None,
        **changes: Any,
    ) -> RunDir:
        rng = np.random.default_rng(seed)
        settings = Settings.model_construct().model_dump(mode="json")
        settings["queries"] = ",".join(queries)
        settings["load"] |= {"rate": float(RATE), "duration": float(SECONDS)}
        for path, value in (config or {}).items():
            group, key = path.split(".")
            settings[group][key] = value
        started = datetime.fromtimestamp(START_MS / 1_000, UTC).isoformat()
        document: dict[str, Any] = {
            "state": "finished",
            "started": started,
            "ended": started,
            "config": settings,
            "seed": 2021,
            "machine": {"processor": "P", "cores": 2, "memory_bytes": 2**34, "system": "Linux"},
            "versions": {"espbench": "0.1.0", "pyspark": "4.3.0"},
            "services": [{"name": "postgresql", "address": "a", "settings": {"fsync": "on"}}],
            "steps": [{"step": "load", "query": None, "started": started, "seconds": 1.5}],
            "queries": [],
        }
        run = RunDir.create(tmp_path / "results", run_id, document)
        for query in queries:
            run.document["queries"].append(_query(run, query, rng, slower))
        run.document |= changes
        run.save(amend=True)
        return run

    return make


def _query(run: RunDir, query: str, rng: np.random.Generator, slower: float) -> dict[str, Any]:
    count = SECONDS * RATE
    in_ms = START_MS + (np.arange(count) * 1_000 // RATE)
    # Slow seconds come in turns, as garbage collection does.
    mood = np.repeat(rng.lognormal(0, 0.1, SECONDS), RATE)
    latency = np.round(slower * mood * rng.lognormal(np.log(100), 0.4, count))
    after = in_ms >= START_MS + WARMUP_S * 1_000
    pq.write_table(
        pa.table(
            {
                "in_ms": in_ms,
                "due_ms": in_ms - 1,
                "latency_ms": latency,
                "end_to_end_ms": latency + 1,
                "after_warmup": after,
            }
        ),
        run.root / f"latencies-{query}.parquet",
    )
    at = np.arange(SECONDS + 1)
    lag = pa.table(
        {
            "time_ms": START_MS + at * 1_000,
            "owed": at * RATE,
            "given": np.maximum(at * RATE - 5, 0),
            "lag": np.full(SECONDS + 1, 5),
            "judged": at >= WARMUP_S,
        }
    )
    pq.write_table(lag, run.root / f"lag-{query}.parquet")
    _logs(run, query)
    return _verdict(query, latency, after)


def _logs(run: RunDir, query: str) -> None:
    logs = run.root / "logs"
    per_second = [RATE] * SECONDS
    stream = {"stream": 1, "asked_per_second": per_second, "per_second": per_second}
    sender = {"start_ms": START_MS, "settings": {"acks": "all"}, "streams": [stream]}
    (logs / f"{query}-sender.json").write_text(json.dumps(sender), encoding="utf-8")
    report = {"engine": "micro-batch", "master": "local[2]", "settings": {"spark.x": "1"}}
    (logs / f"{query}-query.json").write_text(json.dumps(report), encoding="utf-8")
    lines = [
        json.dumps(
            {
                "timestamp": datetime.fromtimestamp(START_MS / 1_000 + second, UTC).isoformat(),
                "batchDuration": 200 + second,
                "numInputRows": RATE,
            }
        )
        for second in range(SECONDS)
    ]
    (logs / f"{query}-query-progress.jsonl").write_text("\n".join(lines), encoding="utf-8")


def _verdict(
    query: str, latency: npt.NDArray[np.float64], after: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    count = len(latency)
    kinds = ("input", "expected", "actual", "matched")
    figures = statistics(latency[after])
    return {
        "format": "espbench-verdict/1",
        "query": query,
        "correctness": "correct",
        "counts": dict.fromkeys(kinds, count) | dict.fromkeys(("missing", "extra", "wrong"), 0),
        "witnesses": [],
        "problems": [],
        "latency_ms": statistics(latency),
        "latency_ms_after_warmup": figures,
        "end_to_end_ms": statistics(latency + 1),
        "end_to_end_ms_after_warmup": statistics(latency[after] + 1),
        "latency_label": None,
        "latency_marks": [],
        "clock": {"ok": True, "problems": []},
        "load": {
            "asked_rate": float(RATE),
            "achieved_rate": float(RATE),
            "lateness_ms": {"p99": 1.0},
            "valid": True,
            "reasons": [],
        },
        "sustainability": {
            "verdict": "sustained",
            "lag_slope_per_s": 0.0,
            "drain_s": 0.1,
            "reasons": [],
        },
        "slo": {"percentile": 90, "limit_ms": 2000, "figure_ms": figures["p90"], "met": True},
        "warmup_s": float(WARMUP_S),
        "validator_s": 0.5,
    }


@pytest.fixture
def add_system() -> Callable[[RunDir], None]:
    """Add system.parquet: two components, one row each per second."""

    def add(run: RunDir) -> None:
        seconds = np.tile(np.arange(SECONDS), 2)
        table = pa.table(
            {
                "time_ms": START_MS + seconds * 1_000,
                "host": ["localhost"] * len(seconds),
                "component": ["kafka"] * SECONDS + ["spark"] * SECONDS,
                "query": pa.nulls(len(seconds), pa.string()),
                "cpu_percent": np.repeat([20.0, 90.0], SECONDS),
                "rss_bytes": np.repeat([400_000_000, 1_500_000_000], SECONDS),
            }
        )
        pq.write_table(table, run.root / "system.parquet")

    return add
