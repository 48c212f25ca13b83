"""Running a matrix by a run function of our own: interruption, failure, resumption, table."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from espbench.config import Settings
from espbench.errors import ExitCode, Interrupted, MachineError, ServiceError, UsageError
from espbench.names import Query
from espbench.runs.listing import entries
from espbench.runs.matrix import FORMAT, Matrix, find_matrix
from espbench.runs.matrix_plan import MatrixFile
from espbench.runs.matrix_table import print_matrix, spread, summarize, warnings
from espbench.runs.store import RunDir, all_runs

ASKED = MatrixFile(queries=["q1", "q3"], rates=[1_000, 10_000], repetitions=3, order="random")


def verdict(query: str, p90: float | None, correctness: str = "correct") -> dict[str, Any]:
    return {
        "query": query,
        "correctness": correctness,
        "latency_ms_after_warmup": {"p50": p90, "p90": p90, "p99": None},
        "load": {"achieved_rate": 999.0, "valid": True},
        "sustainability": {"verdict": "sustained"},
        "slo": {"met": True},
    }


class FakeRuns:
    """Runs that take no time; their latency depends on nothing but the cell and how often it ran.

    `trouble` maps the number of a call (from 1) to what it raises.
    """

    def __init__(self, trouble: dict[int, BaseException] | None = None) -> None:
        self.trouble = trouble or {}
        self.calls: list[tuple[str, float]] = []
        self.finished: dict[tuple[str, float], int] = {}

    def __call__(self, settings: Settings, query: Query, run_id: str) -> tuple[RunDir, ExitCode]:
        cell = (query.short, settings.load.rate)
        self.calls.append(cell)
        run = RunDir.create(settings.results_dir, run_id, {"state": "running", "queries": []})
        error = self.trouble.get(len(self.calls))
        if error:
            run.document["state"] = "failed"
            run.save()
            raise error
        nth = self.finished[cell] = self.finished.get(cell, 0) + 1
        p90 = settings.load.rate / 100 + 10 * nth
        run.document |= {"state": "finished", "queries": [verdict(query.name, p90)]}
        run.save()
        return run, ExitCode.DONE


def base(tmp_path: Path) -> Settings:
    return Settings(results_dir=tmp_path)


def table(matrix: Matrix) -> str:
    text = io.StringIO()
    print_matrix(Console(file=text, width=150), matrix.document["table"])
    return text.getvalue() + "\n".join(warnings(matrix.document["table"]))


def test_a_resumed_matrix_gives_the_table_of_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = Matrix.create(ASKED, base(tmp_path / "a"))
    assert whole.run(FakeRuns()) is ExitCode.DONE

    settings = base(tmp_path / "b")
    runs = FakeRuns({3: Interrupted("stopped by SIGTERM"), 8: ServiceError("kafka died", "look")})
    broken = Matrix.create(ASKED, settings)
    with pytest.raises(Interrupted):
        broken.run(runs)
    states = [cell["state"] for cell in Matrix.open("last", ASKED, settings).cells]
    assert states == ["finished", "finished", "interrupted"] + 9 * ["pending"]

    second = Matrix.open(broken.root.name, ASKED, settings)
    assert second.run(runs) is ExitCode.SERVICE
    assert second.document["state"] == "failed"
    third = Matrix.open("last", ASKED, settings)
    assert third.run(runs) is ExitCode.DONE
    assert len(runs.calls) == 12 + 2
    assert table(third) == table(whole)
    assert third.document["state"] == "finished"
    assert "10,000" in table(third)
    # Nothing is left to do.
    assert Matrix.open("last", ASKED, settings).run(runs) is ExitCode.DONE
    assert len(runs.calls) == 12 + 2


def test_a_matrix_that_was_killed_goes_on_from_its_file(tmp_path: Path) -> None:
    settings = base(tmp_path)
    matrix = Matrix.create(ASKED, settings)
    seen: list[list[str]] = []

    def look(given: Settings, query: Query, run_id: str) -> tuple[RunDir, ExitCode]:
        stored = json.loads((matrix.root / "matrix.json").read_text(encoding="utf-8"))
        seen.append([cell["state"] for cell in stored["cells"]])
        assert stored["format"] == FORMAT
        return runs(given, query, run_id)

    runs = FakeRuns()
    matrix.run(look)
    # What a kill during the second cell would have left.
    assert seen[1][:3] == ["finished", "running", "pending"]
    stored = json.loads((matrix.root / "matrix.json").read_text(encoding="utf-8"))
    stored["cells"][1]["state"] = "running"
    (matrix.root / "matrix.json").write_text(json.dumps(stored), encoding="utf-8")
    Matrix.open("last", ASKED, settings).run(runs)
    assert len(runs.calls) == 13


def test_a_finished_cell_whose_run_is_gone_is_run_again(tmp_path: Path) -> None:
    settings, runs = base(tmp_path), FakeRuns()
    matrix = Matrix.create(ASKED, settings)
    matrix.run(runs)
    run = RunDir.open(tmp_path / matrix.cells[4]["runs"][0])
    (run.root / "run.json").unlink()
    again = Matrix.open("last", ASKED, settings)
    again.run(runs)
    assert len(runs.calls) == 13
    assert len(again.cells[4]["runs"]) == 2


def test_failures_in_a_row_stop_it(tmp_path: Path) -> None:
    trouble: dict[int, BaseException] = {
        call: ServiceError("the disk is full", "free some space") for call in (1, 3, 4, 5)
    }
    runs = FakeRuns(trouble)
    matrix = Matrix.create(ASKED, base(tmp_path))
    with pytest.raises(MachineError, match="3 cells failed") as caught:
        matrix.run(runs)
    assert "the disk is full" in caught.value.line()
    assert len(runs.calls) == 5
    assert matrix.document["state"] == "failed"


def test_another_question_is_not_resumed(tmp_path: Path) -> None:
    settings = base(tmp_path)
    matrix = Matrix.create(ASKED, settings)
    with pytest.raises(UsageError, match=r"matrix\.repetitions"):
        Matrix.open("last", ASKED.model_copy(update={"repetitions": 4}), settings)
    slow = settings.model_copy(update={"load": settings.load.model_copy(update={"duration": 9.0})})
    with pytest.raises(UsageError, match=r"config\.load\.duration"):
        Matrix.open("last", ASKED, slow)
    with pytest.raises(UsageError, match="called nothing"):
        Matrix.open("nothing", ASKED, settings)
    (matrix.root / "matrix.json").write_text('{"format": ')
    with pytest.raises(UsageError, match="cannot be read"):
        Matrix.open("last", ASKED, settings)
    with pytest.raises(UsageError, match="no matrix"):
        find_matrix(tmp_path / "elsewhere", "last")


def test_a_matrix_is_no_run(tmp_path: Path) -> None:
    settings = base(tmp_path)
    Matrix.create(ASKED, settings).run(FakeRuns())
    assert len(all_runs(tmp_path)) == 12
    assert not [one for one in entries(tmp_path) if one["run"].startswith("matrix")]


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    matrix = Matrix.create(ASKED, base(tmp_path))
    other = Matrix.open("last", ASKED, matrix.base)

    def meddle(_settings: Settings, _query: Query, _run: str) -> tuple[RunDir, ExitCode]:
        with pytest.raises(MachineError, match="being run already"):
            other.run(FakeRuns())
        raise Interrupted("seen")

    with pytest.raises(Interrupted, match="seen"):
        matrix.run(meddle)


def cell(repetition: int, p90: float | None, state: str = "finished") -> dict[str, Any]:
    axes = {"query": "identify-errors", "rate": 1000.0, "engine": "auto"}
    result = {"correctness": "correct", "load_valid": True, "sustainability": "sustained"}
    figures = {"p50_ms": p90, "p90_ms": p90, "p99_ms": None, "achieved_rate": 1000.0}
    return axes | {
        "database": "configured",
        "profile": "constant",
        "repetition": repetition,
        "state": state,
        "result": result | figures if state == "finished" else None,
    }


def test_median_spread_and_warnings() -> None:
    assert spread([10.0, 30.0, 20.0]) == {"median": 20, "min": 10, "max": 30, "spread": 1.0}
    assert spread([None]) is None
    assert spread([5.0]) == {"median": 5, "min": 5, "max": 5, "spread": None}
    calm = summarize([cell(1, 100.0), cell(2, 110.0), cell(3, 119.0)])
    assert warnings(calm) == []
    assert calm[0]["p90_ms"]["median"] == 110
    wild = summarize([cell(2, 125.0), cell(1, 100.0), cell(3, None, "failed")])
    assert [line.partition(";")[0] for line in warnings(wild)] == [
        "identify-errors at 1000/s: 2 of 3 repetitions finished",
        "identify-errors at 1000/s: p90 of the repetitions lies 22 % apart (100-125 ms)",
    ]


def test_the_code_of_all_cells(tmp_path: Path) -> None:
    matrix = Matrix.create(ASKED, base(tmp_path))
    matrix.cells[0]["code"] = 6
    assert matrix.code() is ExitCode.GATE_MISSED
    matrix.cells[1]["error"] = "kafka died"
    assert matrix.code() is ExitCode.SERVICE
    matrix.cells[2]["code"] = 4
    assert matrix.code() is ExitCode.INCORRECT
