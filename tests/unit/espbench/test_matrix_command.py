"""`espbench run --matrix` and `--full`, with a run that takes no time."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from espbench.cli import app
from espbench.config import Settings
from espbench.errors import ConfigError, ExitCode, Interrupted, UsageError
from espbench.names import Query
from espbench.runs import run as whole_run
from espbench.runs.plan import Wishes
from espbench.runs.store import RunDir


@pytest.fixture
def kept() -> list[tuple[str, ...]]:
    """What every run was asked to keep."""
    return []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, kept: list[tuple[str, ...]]) -> list[Settings]:
    """The settings of every run that was asked for."""
    seen: list[Settings] = []

    def fake(
        settings: Settings,
        queries: tuple[Query, ...],
        run_id: str,
        *,
        quiet: bool,
        wishes: Wishes,
    ) -> tuple[RunDir, ExitCode]:
        seen.append(settings)
        kept.append(wishes.keep)
        (query,) = queries
        verdict: dict[str, Any] = {
            "query": query.name,
            "correctness": "correct",
            "latency_ms_after_warmup": {"p50": 1.0, "p90": 40.0 * len(seen), "p99": None},
            "load": {"achieved_rate": settings.load.rate, "valid": True},
            "sustainability": {"verdict": "sustained"},
        }
        document = {"state": "finished", "queries": [verdict], "quiet": quiet}
        return RunDir.create(settings.results_dir, run_id, document), ExitCode.DONE

    monkeypatch.setattr(whole_run, "run_benchmark", fake)
    return seen


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["run", *arguments], catch_exceptions=False)


def test_a_matrix_file_from_end_to_end(tmp_path: Path, asked: list[Settings]) -> None:
    file = tmp_path / "m.yml"
    file.write_text(
        "{queries: [q3], rates: [10, 20], profiles: ['steps:steps=2', constant], repetitions: 2, "
        "settings: {load: {duration: 7, warmup: 1}, data: {scale: 2}}}"
    )
    answer = call("--matrix", str(file), "--out", str(tmp_path), "--warmup", "3", "--json")
    document = json.loads(answer.stdout)
    assert (document["state"], len(document["cells"]), len(document["table"])) == ("finished", 8, 4)
    assert len(asked) == 8
    assert {settings.load.profile for settings in asked} == {"steps:steps=2", "constant"}
    assert {settings.data.scale for settings in asked} == {2}
    assert {(one.load.duration, one.load.warmup) for one in asked} == {(7.0, 3.0)}
    assert len(document["warnings"]) == 4
    again = call(
        *("--matrix", str(file), "--out", str(tmp_path), "--warmup", "3"), "--resume", "last"
    )
    assert len(asked) == 8
    assert "20 " in again.stdout
    assert "repeat more often" in again.stdout


def test_the_experiment_of_2021_can_be_made_smaller(
    tmp_path: Path, asked: list[Settings], kept: list[tuple[str, ...]]
) -> None:
    options = ["--queries", "q0", "--duration", "2", "--keep", "hosts", "--out", str(tmp_path)]
    answer = call("--full", *options)
    assert set(map(tuple, kept)) == {("hosts",)}
    assert [settings.load.rate for settings in asked] == [1_000, 10_000] * 3
    assert {(one.queries, one.load.duration, one.data.scale) for one in asked} == {
        ("identity", 2.0, 3)
    }
    assert "6 of 6 cells to run; about 0:04:12" in answer.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--full", "--matrix", "m.yml"], "--matrix FILE or --full"),
        (["--full", "--queries", "q77"], "q77"),
        (["--full", "--engine", "warp"], "spark.engine"),
    ],
)
@pytest.mark.usefixtures("asked")
def test_what_cannot_be_is_refused(tmp_path: Path, options: list[str], said: str) -> None:
    with pytest.raises((UsageError, ConfigError)) as caught:
        call(*options, "--out", str(tmp_path))
    assert said in caught.value.line()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("settings: {load: {speed: 1}}", "settings in"),
        ("profiles: [zigzag]", "zigzag"),
        ("profiles: ['steps:steps=x']", "steps=x"),
    ],
)
@pytest.mark.usefixtures("asked")
def test_a_wrong_file_makes_nothing(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "m.yml"
    file.write_text(text)
    with pytest.raises((UsageError, ConfigError)) as caught:
        call("--matrix", str(file), "--out", str(tmp_path / "results"))
    assert said in caught.value.line()
    assert not (tmp_path / "results").exists()


def test_an_interruption_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_given: Any, **_options: Any) -> None:
        raise Interrupted("stopped by SIGTERM")

    monkeypatch.setattr(whole_run, "run_benchmark", stop)
    with pytest.raises(Interrupted, match=r"--resume matrix-\d+T"):
        call("--full", "--out", str(tmp_path))
