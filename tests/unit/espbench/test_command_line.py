"""The command line as a user meets it: a child process, its exit code and its words."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from espbench.cli import app
from espbench.paths import locked

if TYPE_CHECKING:
    from typer._click import Command


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
        (
            ["run", "--engine", "real-time", "--queries", "q2", "--master", "spark://h:1"],
            "our Python runs on the driver's machine only",
        ),
        (["run", "--engine", "available-now"], "a run cannot use it"),
        (["run", "--full", "--engine", "available-now"], "a run cannot use it"),
        (["run", "--full", "--steps", "send"], "the runs of a matrix are whole ones"),
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


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("config --bogus", 2),
        ("nonsense", 2),
        ("run --queries q9", 2),
        ("show nothing", 2),
        ("validate absent", 2),
        ("topics list", 3),
        ("load --data .", 3),
    ],
)
def test_with_json_a_failure_is_one_document_too(words: str, code: int, tmp_path: Path) -> None:
    answer = espbench(*words.split(), "--json", directory=tmp_path)
    document = json.loads(answer.stdout)
    assert (answer.returncode, document["exit_code"]) == (code, code)
    assert answer.stderr == f"espbench: {document['error']}\n"


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


@pytest.mark.parametrize("words", ["list --out", "validate", "monitor --duration 1 --out"])
def test_a_name_too_long_is_no_bug_of_ours(words: str, tmp_path: Path) -> None:
    answer = espbench(*words.split(), "x" * 300, directory=tmp_path)
    assert answer.returncode == 3
    assert len(answer.stderr.splitlines()) == 1


def commands(group: TyperGroup, *words: str) -> "dict[str, Command]":
    """Every command and group of commands by the words that call it."""
    found: dict[str, Command] = {" ".join(words): group}
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            found |= commands(command, *words, name)
        else:
            found[" ".join([*words, name])] = command
    return found


COMMANDS = commands(cast("TyperGroup", get_command(app)))


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_help_with_an_example(words: str) -> None:
    answer = CliRunner().invoke(app, [*words.split(), "--help"])
    assert answer.exit_code == 0
    assert "Example" in answer.stdout
    for option in COMMANDS[words].params:
        assert getattr(option, "help", ""), option.name


@pytest.mark.parametrize("words", [words for words in COMMANDS if words])
def test_the_usual_options_are_everywhere(words: str) -> None:
    """Of groups and of the command that starts others, theirs are those of the inner command."""
    command = COMMANDS[words]
    options = {name for each in command.params for name in each.opts}
    if not isinstance(command, TyperGroup) and not words.startswith("background"):
        assert {"--config", "--json", "--quiet", "--verbose"} <= options
    if words in {"topics create", "send", "query", "capture"}:
        assert {"--run", "--prefix", "--bootstrap-servers"} <= options
