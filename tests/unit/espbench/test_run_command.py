"""`espbench run --json`: one document on standard output, however the run ends."""

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from espbench.cli import app
from espbench.config import Settings
from espbench.errors import Interrupted, ServiceError
from espbench.names import Query
from espbench.runs import run as runs
from espbench.runs.store import RunDir

VERDICT = {"query": "identity", "correctness": "correct"}


def stub(monkeypatch: pytest.MonkeyPatch, error: BaseException, state: str | None) -> None:
    """A run that has one verdict, and then fails so; without a state before it has a directory."""

    def run(settings: Settings, _queries: tuple[Query, ...], run_id: str, **_: Any) -> NoReturn:
        if state is not None:
            document = {"state": state, "queries": [VERDICT], "error": str(error)}
            RunDir.create(settings.results_dir, run_id, document)
        raise error

    monkeypatch.setattr(runs, "run_benchmark", run)


@pytest.mark.parametrize(
    ("error", "state"),
    [(ServiceError("kafka ended", "see its log"), "failed"), (Interrupted(), "interrupted")],
)
def test_verdicts_before_the_end_are_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    state: str,
) -> None:
    stub(monkeypatch, error, state)
    with pytest.raises(type(error)):
        get_command(app).main(["run", "--json", "--out", str(tmp_path)], standalone_mode=False)
    document = json.loads(capsys.readouterr().out)
    assert document["queries"] == [VERDICT]
    assert document["error"] == str(error)
    assert Path(document["results"]).parent == tmp_path


@pytest.mark.parametrize("options", [["--json"], []])
def test_a_run_that_never_began_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    stub(monkeypatch, ServiceError("locked", "wait"), "failed" if not options else None)
    answer = CliRunner().invoke(app, ["run", "--out", str(tmp_path), *options])
    assert isinstance(answer.exception, ServiceError)
    assert answer.stdout == ""


@pytest.mark.parametrize(("seconds", "warns"), [("29", True), ("30", False)])
def test_a_run_too_short_for_a_verdict_says_so_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seconds: str,
    warns: bool,
) -> None:
    stub(monkeypatch, ServiceError("locked", "wait"), None)
    words = ["run", "--out", str(tmp_path), "--duration", seconds]
    with pytest.raises(ServiceError):
        get_command(app).main(words, standalone_mode=False)
    assert ("left after the warm-up" in capsys.readouterr().err) is warns
