"""The command line as a user meets it: a child process, its exit code and its words."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from espbench.paths import locked


def espbench(*arguments: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "espbench", *arguments],
        capture_output=True,
        text=True,
        cwd=directory,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["--version"], ["run", "--version"]])
def test_version_works_everywhere(arguments: list[str], tmp_path: Path) -> None:
    answer = espbench(*arguments, directory=tmp_path)
    assert (answer.returncode, answer.stdout.split()[0]) == (0, "espbench")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "No such command"),
        (["run", "--rate", "fast"], "--rate"),
        (["run", "--rate", "-1"], "load.rate"),
        (["run", "--queries", "q9"], "there is no query 'q9'"),
        (["config", "--config", "absent.yml"], "absent.yml"),
        (["up", "zookeeper"], "there is no service 'zookeeper'"),
        (["load", "--db", "postgresql://me:secret@h/d"], "holds a password"),
        (["run", "--db", "sqlite:///x"], "not a database address"),
        (["run", "--master", "nonsense"], "is no Spark master"),
        (["run", "--engine", "real-time", "--queries", "q2"], "cannot run in the mode real-time"),
        (["run", "--engine", "available-now"], "a run cannot use it"),
        (
            ["run", "--engine", "real-time", "--master", "local[1]", "--partitions", "4"],
            "runs 5 tasks at once",
        ),
        (["topics", "delete", "--run", "../x"], "cannot be part of a topic's name"),
        (["send", "--run", "a b", "--stream", "1=x"], "cannot be part of a topic's name"),
        (["monitor", "--out", "m", "--duration", "0"], "load.duration = 0"),
        (["monitor", "--out", "m", "--interval", "nan"], "--interval"),
        (["load", "--start-in", "inf"], "--start-in"),
        (["databases", "--batch-ms", "inf"], "--batch-ms"),
        (["clocks", "--host", "x='"], "No closing quotation"),
        (["topics", "delete"], "see espbench topics delete --help"),
        (["topics", "nope"], "see espbench topics --help"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    answer = espbench(*arguments, directory=tmp_path)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert "secret" not in answer.stderr.replace("holds a password", "")
    assert not list(tmp_path.iterdir())


def test_config_prints_one_json_document(tmp_path: Path) -> None:
    answer = espbench("config", "--json", directory=tmp_path)
    assert json.loads(answer.stdout)["load"]["rate"] == 1000


def test_a_missing_broker_is_one_line_and_exit_code_3(tmp_path: Path) -> None:
    answer = espbench("topics", "create", "--run", "r", "--queries", "3", directory=tmp_path)
    assert answer.returncode == 3
    assert "espbench up" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["a,b", "a:b", 'a"b'])
def test_a_path_that_java_or_kafka_would_split_is_refused(name: str, tmp_path: Path) -> None:
    directory = tmp_path / name
    directory.mkdir()
    answer = espbench("up", directory=directory)
    assert answer.returncode == 2
    assert "ESPBENCH_STATE_DIR" in answer.stderr
    assert not list(directory.iterdir())


def test_only_one_run_at_a_time_uses_a_state_directory(tmp_path: Path) -> None:
    (tmp_path / ".espbench").mkdir()
    with locked(tmp_path / ".espbench" / "run.lock"):
        answer = espbench("run", "--quiet", directory=tmp_path)
    assert answer.returncode == 3
    assert "another run is going on" in answer.stderr
    assert not (tmp_path / "results").exists()


def test_every_command_has_help_with_an_example(tmp_path: Path) -> None:
    listed = espbench("--help", directory=tmp_path).stdout
    for name in ("run", "doctor", "up", "down", "status", "datagen", "load", "send", "query"):
        assert name in listed
        answer = espbench(name, "--help", directory=tmp_path)
        assert answer.returncode == 0
        assert "Example" in answer.stdout, name
