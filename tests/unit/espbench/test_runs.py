"""What a run makes of verdicts: exit code, table, summary."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from espbench.config import load_settings
from espbench.errors import Interrupted, ServiceError, UsageError
from espbench.names import QUERIES
from espbench.runs import run as runs
from espbench.runs.run import exit_code
from espbench.runs.store import COLUMNS_2021, RunDir, all_runs, check_whole, find_run
from espbench.runs.table import print_results, reasons


def verdict(**changes: Any) -> dict[str, Any]:
    latency = {"n": 9, "min": 1.0, "mean": 2.0, "p50": 3.0, "p90": 4.0, "p99": None, "max": 5.0}
    kinds = ("input", "expected", "actual", "matched", "missing", "extra", "wrong")
    base: dict[str, Any] = {
        "query": "identify-errors",
        "correctness": "correct",
        "counts": dict.fromkeys(kinds, 9) | dict.fromkeys(("missing", "extra", "wrong"), 0),
        "witnesses": [],
        "latency_ms": latency,
        "latency_ms_after_warmup": latency,
        "end_to_end_ms": latency,
        "load": {"asked_rate": 1000.0, "achieved_rate": 999.5, "valid": True, "reasons": []},
        "sustainability": {"verdict": "sustained", "reasons": []},
        "slo": {"percentile": 90, "limit_ms": 2000, "met": True},
        "validator_s": 0.5,
    }
    return base | changes


def sustainability(word: str) -> dict[str, Any]:
    return {"sustainability": {"verdict": word, "reasons": ["because"]}}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"correctness": "incorrect"}, 4),
        ({"correctness": "unknown"}, 5),
        ({"load": {"asked_rate": 1, "achieved_rate": 0, "valid": False, "reasons": []}}, 5),
        (sustainability("unknown"), 5),
        (sustainability("not sustained"), 6),
        ({"slo": {"percentile": 90, "limit_ms": 1, "met": False}}, 6),
        ({"correctness": "incorrect", **sustainability("unknown")}, 4),
    ],
)
def test_the_exit_code_of_a_run(changes: dict[str, Any], code: int) -> None:
    assert exit_code([verdict(), verdict(**changes)]) == code


def test_the_table_shows_every_cell_whole() -> None:
    text = io.StringIO()
    print_results(Console(file=text, width=40), [verdict(**sustainability("not sustained"))])
    shown = text.getvalue()
    for word in ("identify-errors", "correct", "1,000", "valid", "no", "p99"):
        assert word in shown
    assert "…" not in shown


def test_reasons_name_query_and_place() -> None:
    witness = {"kind": "missing", "topic": "t", "partition": 0, "offset": 7}
    harmless = {**witness, "kind": "surplus"}
    found = reasons([verdict(witnesses=[harmless, witness], **sustainability("unknown"))])
    assert found == ["identify-errors: because", "identify-errors: missing at t[0]@7"]


def test_the_summary_begins_with_the_columns_of_2021(tmp_path: Path) -> None:
    config = {"kafka": {"prefix": "espbench"}}
    run = RunDir.create(tmp_path, "r1", {"config": config, "steps": [], "queries": [verdict()]})
    run.write_summary()
    with (tmp_path / "r1" / "summary.csv").open(encoding="utf-8", newline="") as file:
        header, row = csv.reader(file)
    assert tuple(header[: len(COLUMNS_2021)]) == COLUMNS_2021
    found = dict(zip(header, row, strict=True))
    assert found["Topic"] == "espbench-r1-q3-identify-errors"
    assert (found["Correct"], found["RT-90%ile in ms"], found["Correctness %"]) == (
        "true",
        "4.0",
        "100.0",
    )
    assert json.loads((tmp_path / "r1" / "run.json").read_text(encoding="utf-8"))["run_id"] == "r1"


def test_a_run_is_never_written_over(tmp_path: Path) -> None:
    RunDir.create(tmp_path, "r1", {})
    with pytest.raises(UsageError, match="there is a run r1"):
        RunDir.create(tmp_path, "r1", {})


def test_a_run_is_found_by_id_beginning_last_and_path(tmp_path: Path) -> None:
    for run_id in ("20260101T000000-aaaa", "20260102T000000-bbbb"):
        RunDir.create(tmp_path, run_id, {"state": "finished"})
    ids = [run.document["run_id"] for run in all_runs(tmp_path)]
    assert ids == ["20260101T000000-aaaa", "20260102T000000-bbbb"]
    assert find_run(tmp_path, "last").document["run_id"] == ids[1]
    assert find_run(tmp_path, "20260101").document["run_id"] == ids[0]
    assert find_run(tmp_path / "elsewhere", str(tmp_path / ids[0])).document["run_id"] == ids[0]


@pytest.mark.parametrize("name", ["2026", "1999", "nothing"])
def test_a_run_that_is_not_one_is_refused(tmp_path: Path, name: str) -> None:
    for run_id in ("20260101T000000-aaaa", "20260102T000000-bbbb"):
        RunDir.create(tmp_path, run_id, {})
    with pytest.raises(UsageError, match=name):
        find_run(tmp_path, name)


def test_a_foreign_run_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "run.json").write_text('{"format": "other/9"}')
    with pytest.raises(UsageError, match="other/9"):
        find_run(tmp_path, "x")


@pytest.mark.parametrize("part", ["config", "queries"])
def test_a_damaged_document_is_not_reported(part: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path, {"config": {}, "queries": []} | {part: [{"query": "nope"}]})
    with pytest.raises(UsageError, match=r"run\.json is damaged"):
        check_whole(run)


def test_a_document_with_what_is_no_number_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": "espbench-run/1", "rate": NaN}')
    with pytest.raises(UsageError, match="NaN"):
        RunDir.open(tmp_path)


@pytest.mark.parametrize(
    ("error", "state", "said"),
    [
        (KeyboardInterrupt(), "interrupted", "interrupted"),
        (Interrupted("stopped by SIGTERM"), "interrupted", "stopped by SIGTERM"),
        (ServiceError("kafka died", "see its log"), "failed", "kafka died; see its log"),
    ],
)
def test_a_run_tells_in_words_what_ended_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, state: str, said: str
) -> None:
    class Driver:
        def __init__(self, *_: Any) -> None:
            raise error

    monkeypatch.setattr(runs, "Driver", Driver)
    places = {"state_dir": tmp_path / "state", "results_dir": tmp_path / "results"}
    with pytest.raises(type(error)):
        runs.run_benchmark(load_settings(None, places), QUERIES[:1], "trial", quiet=True)
    document = json.loads((tmp_path / "results/trial/run.json").read_text(encoding="utf-8"))
    assert (document["state"], document["error"]) == (state, said)
