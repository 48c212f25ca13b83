"""`espbench list` and `show`, and what makes a run immutable."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from espbench.cli import app
from espbench.errors import UsageError
from espbench.runs.listing import entries, files, size_text
from espbench.runs.store import RunDir, all_runs

OLD, NEW = "20260101T000000-aaaa", "20260102T000000-bbbb"


def verdict(query: str = "identify-errors", **changes: Any) -> dict[str, Any]:
    latency = {"n": 9, "min": 1.0, "mean": 2.0, "p50": 3.0, "p90": 4321.0, "p99": None, "max": 5.0}
    kinds = ("input", "expected", "actual", "matched", "missing", "extra", "wrong")
    base: dict[str, Any] = {
        "query": query,
        "correctness": "correct",
        "counts": dict.fromkeys(kinds, 0),
        "witnesses": [],
        "latency_ms": latency,
        "latency_ms_after_warmup": latency,
        "end_to_end_ms": latency,
        "load": {"asked_rate": 1000.0, "achieved_rate": 999.5, "valid": True, "reasons": []},
        "sustainability": {"verdict": "sustained", "reasons": ["it was slow"]},
        "slo": {"percentile": 90, "limit_ms": 2000, "met": True},
        "validator_s": 0.5,
    }
    return base | changes


def make_run(results: Path, run_id: str, state: str = "finished", **changes: Any) -> RunDir:
    document: dict[str, Any] = {
        "state": "running",
        "started": "2026-01-01T00:00:00.5+00:00",
        "ended": None,
        "config": {"queries": "q3", "load": {"rate": 1000.0, "duration": 40.0}},
        "machine": {"processor": "a fast one", "memory_bytes": 2**33},
        "versions": {"pyspark": "4.3.0"},
        "steps": [{"step": "send", "query": "identify-errors", "seconds": 43.25}],
        "queries": [verdict()],
    }
    run = RunDir.create(results, run_id, document | changes)
    (run.root / "system.parquet").write_bytes(b"x" * 2_000)
    run.document["state"] = state
    run.save()
    return run


def call(*arguments: str) -> str:
    answer = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert answer.exit_code == 0
    return answer.stdout


def test_list_tells_each_run_and_names_the_broken_ones(tmp_path: Path) -> None:
    make_run(tmp_path, OLD)
    make_run(tmp_path, NEW, "failed", queries=[], error="kafka died")
    (tmp_path / "20260103T000000-cccc").mkdir()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "run.json").write_text('{"format": ')
    make_run(tmp_path, "20260104T000000-dddd", queries=[{"query": "identify-errors"}])
    (tmp_path / "matrix-20260101T000000-aaaa").mkdir()
    (tmp_path / "baselines").mkdir()
    found = json.loads(call("list", "--json", "--out", str(tmp_path)))["runs"]
    assert [(one["run"], one["state"]) for one in found] == [
        (OLD, "finished"),
        (NEW, "failed"),
        ("20260103T000000-cccc", "unreadable"),
        ("20260104T000000-dddd", "unreadable"),
        ("torn", "unreadable"),
    ]
    first = found[0]
    assert (first["verdict"], first["p90_ms"]) == ("correct", {"identify-errors": 4321.0})
    assert first["bytes"] >= 2_000
    assert (found[1]["verdict"], found[1]["error"]) == (None, "kafka died")
    shown = call("list", "--out", str(tmp_path))
    for word in (OLD, "q3 4,321", "1,000", "unreadable", "2026-01-01 00:00:00"):
        assert word in shown
    assert "…" not in shown
    assert [run.document["run_id"] for run in all_runs(tmp_path)] == [
        OLD,
        NEW,
        "20260104T000000-dddd",
    ]


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    assert "no runs" in call("list", "--out", str(tmp_path / "nowhere"))
    assert entries(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"correctness": "incorrect"}, "incorrect"),
        ({"correctness": "unknown"}, "unknown"),
        ({"slo": {"met": False}}, "gate missed"),
    ],
)
def test_the_verdict_is_the_worst_of_the_queries(
    tmp_path: Path, changes: dict[str, Any], word: str
) -> None:
    make_run(tmp_path, OLD, queries=[verdict(), verdict(**changes)])
    assert entries(tmp_path)[0]["verdict"] == word


def test_show_tells_everything_of_one_run(tmp_path: Path) -> None:
    make_run(tmp_path, OLD)
    shown = call("show", "last", "--out", str(tmp_path))
    for word in (
        *(OLD, "finished", "4,321", "identify-errors: it was slow", "43.2 s  send"),
        *("a fast one", "8.0 GiB", "pyspark", "2.0 kB  system.parquet"),
    ):
        assert word in shown
    document = json.loads(call("show", OLD[:8], "--json", "--out", str(tmp_path)))
    assert document["run_id"] == OLD
    assert {"file": "system.parquet", "bytes": 2_000} in document["files"]


def test_show_of_a_garbled_run_is_no_bug(tmp_path: Path) -> None:
    make_run(tmp_path, OLD, steps=[{"step": "send"}])
    with pytest.raises(UsageError, match="seconds"):
        CliRunner().invoke(app, ["show", "--out", str(tmp_path)], catch_exceptions=False)


def test_a_finished_run_is_not_saved_again(tmp_path: Path) -> None:
    run = make_run(tmp_path, OLD)
    again = RunDir.open(run.root)
    for sealed in (run, again):
        sealed.document["state"] = "running"
        with pytest.raises(UsageError, match="is finished"):
            sealed.save()
    assert RunDir.open(run.root).document["state"] == "finished"
    again.document |= {"state": "finished", "note": "x"}
    again.save(amend=True)
    assert RunDir.open(run.root).document["note"] == "x"


def test_a_finished_run_is_read_only_and_an_interrupted_one_goes_on(tmp_path: Path) -> None:
    done, stopped = make_run(tmp_path, OLD), make_run(tmp_path, NEW, "interrupted")
    modes = [
        stat.S_IMODE((run.root / name).stat().st_mode) & 0o222
        for run in (done, stopped)
        for name in ("run.json", "system.parquet")
    ]
    assert modes[:2] == [0, 0]
    assert all(modes[2:])
    resumed = RunDir.open(stopped.root)
    resumed.document["state"] = "finished"
    resumed.save()


def test_sizes_and_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    assert files(tmp_path) == [{"file": "a/b", "bytes": 5}]
    assert [size_text(size) for size in (5, 1_500, 2_340_000, 7.1e9)] == [
        *("5 B", "1.5 kB", "2.3 MB", "7.1 GB")
    ]
