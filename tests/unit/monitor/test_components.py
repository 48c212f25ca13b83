"""Which process belongs to which component."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.monitor import processes
from espbench.monitor.components import Finder, espbench_command, parse_process
from espbench.monitor.processes import Process
from espbench.services.process import ProcessRecord

RUN = "20260101T000000-aaaa"


def process(pid: int, parent: int, name: str = "python", started: float = 1.0) -> Process:
    return Process(pid, parent, started, name, 0.0, 1, 0)


def table(*members: Process) -> dict[int, Process]:
    return {member.pid: member for member in members}


def lines(monkeypatch: pytest.MonkeyPatch, by_pid: dict[int, str]) -> None:
    monkeypatch.setattr(processes, "arguments", lambda pid: tuple(by_pid.get(pid, "").split()))


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("python -m espbench send --run r", "send"),
        ("/usr/bin/python3 /opt/venv/bin/espbench query q3", "query"),
        ("/opt/venv/bin/espbench run", "run"),
        ("python -X dev -m espbench validate x", "validate"),
        ("espbench --version", None),
        ("python -m espbench", None),
        ("grep espbench send", "send"),  # a name alone: only where the run's id is there as well
        ("vi notes on espbench send", None),
        ("", None),
    ],
)
def test_a_command_is_known_however_it_was_started(line: str, command: str | None) -> None:
    assert espbench_command(tuple(line.split())) == command


def test_descendants_belong_to_the_nearest_component_above(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines(
        monkeypatch,
        {
            10: "python -m espbench run",
            11: "ansible-playbook site.yml",
            12: f"python -m espbench query q3 --run {RUN}-q3",
            15: f"python -m espbench send --run {RUN}-q3",
            17: f"python -m espbench validate results/{RUN}/capture/x",
        },
    )
    found = Finder({"kafka": 20}, tree=10).assign(
        table(
            process(1, 0, "init"),
            process(10, 1),
            process(11, 10),
            process(12, 11),
            process(13, 12, "java"),
            process(14, 13, "python3"),
            process(15, 11),
            process(16, 15),
            process(17, 11),
            process(18, 13, "sh"),
            process(20, 10, "java"),
            process(21, 20, "java"),
            process(30, 1),
        )
    )
    assert found == {
        10: "run",
        11: "run",
        12: "query",
        13: "spark",
        14: "spark-python",
        15: "sender",
        16: "sender",
        17: "validator",
        18: "spark",
        20: "kafka",
        21: "kafka",
    }


def test_a_run_is_found_by_its_id_wherever_its_processes_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines(
        monkeypatch,
        {
            12: f"python -m espbench query q3 --run {RUN}-q3",
            15: "python -m espbench send --run another-q3",
            16: f"tail -f {RUN}.log",
        },
    )
    members = table(process(12, 1), process(13, 12, "java"), process(15, 1), process(16, 1))
    assert Finder({}, run=RUN).assign(members) == {12: "query", 13: "spark"}
    assert Finder({}, everything=True).assign(members) == {12: "query", 13: "spark", 15: "sender"}
    assert Finder({}).assign(members) == {}


def test_a_young_process_is_asked_again_for_its_command_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    current = {12: "python -m espbench run"}
    lines(monkeypatch, current)
    with subprocess.Popen(["sleep", "60"]) as fresh:
        now = processes.table()[fresh.pid].started
        fresh.kill()
    finder = Finder({}, everything=True)
    young, old = table(process(12, 1, started=now)), table(process(12, 1, started=0.0))
    assert finder.assign(young) == {12: "run"}
    current[12] = "python -m espbench send"
    assert finder.assign(young) == {12: "sender"}
    assert finder.assign(old) == {12: "sender"}
    current[12] = "never asked again"
    assert finder.assign(old) == {12: "sender"}


def test_the_monitor_knows_itself() -> None:
    assert Finder({}).assign(processes.table())[os.getpid()] == "monitor"


def test_pid_files_of_ours_and_of_others(tmp_path: Path) -> None:
    here = processes.table()
    parent = os.getppid()
    ours, plain, stale, torn = (tmp_path / name for name in ("ours", "plain", "stale", "torn"))
    ProcessRecord.of(parent).write(ours)
    plain.write_text(f"{parent}\n/data\n")
    stale.write_text(json.dumps({"pid": parent, "started": "long ago"}))
    torn.write_text('{"pid": ')
    assert Finder({"a": ours}).assign(here)[parent] == "a"
    assert Finder({"a": plain}).assign(here)[parent] == "a"
    for nothing in (stale, torn, tmp_path / "missing"):
        assert "a" not in Finder({"a": nothing}).assign(here).values()


def test_processes_by_option() -> None:
    assert parse_process("mine=4711") == ("mine", 4711)
    assert parse_process("db=/run/db.pid") == ("db", Path("/run/db.pid"))
    for wrong in ("mine", "=4711", "mine=", "host=1"):
        with pytest.raises(UsageError, match="--process"):
            parse_process(wrong)
