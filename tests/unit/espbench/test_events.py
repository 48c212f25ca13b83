"""Ansible's events as a run reads them: steps, their ends, and why one failed."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from espbench.runs.events import Began, Ended, Failed, Reader, Skipped, Step, step_of

SEND = {
    "task": "Send the streams of identify-errors",
    "task_path": "/x/playbooks/tasks/send.yml:17",
    "task_uuid": "1",
}


def event(kind: str, second: int, data: dict[str, Any], **result: Any) -> dict[str, Any]:
    return {
        "event": kind,
        "created": f"2026-01-01T00:00:{second:02d}+00:00",
        "event_data": data | ({"res": result} if result else {}),
    }


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    found = Reader(tmp_path)
    found.read(event("playbook_on_task_start", 1, SEND))
    return found


@pytest.mark.parametrize(
    ("path", "task", "step"),
    [
        (
            "/x/tasks/send.yml:17",
            "Send the streams of identify-errors",
            ("send", "identify-errors"),
        ),
        ("/x/tasks/load.yml:2", "Load the database, or reset what a run changed", ("load", None)),
        ("/x/tasks/query.yml:3", "Steps of identity", None),
        ("/x/run.yml:9", "Judge one query after another", None),
        ("", "", None),
    ],
)
def test_the_file_names_the_step_and_the_last_word_the_query(
    path: str, task: str, step: tuple[str, str | None] | None
) -> None:
    assert step_of({"task_path": path, "task": task}) == (Step(*step) if step else None)


def test_a_step_begins_and_ends(reader: Reader) -> None:
    step = Step("send", "identify-errors")
    began = Reader(Path()).read(event("playbook_on_task_start", 1, SEND))
    assert began == Began(step, datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC))
    ended = reader.read(event("runner_on_ok", 4, SEND, rc=0, stdout="{}"))
    assert ended == Ended(step, datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC), 3.0, "{}")


def test_a_skipped_step_is_no_step(reader: Reader) -> None:
    assert isinstance(reader.read(event("runner_on_skipped", 2, SEND)), Skipped)


@pytest.mark.parametrize(
    ("result", "message", "code"),
    [
        ({"rc": 3, "stderr": "x\nespbench: the broker is gone; start it\n"}, "the broker is", 3),
        ({"rc": -9, "stderr": ""}, "was killed by SIGKILL", -9),
        ({"rc": 1, "stderr": "Traceback\nKeyError: 'x'"}, "ended with exit code 1: KeyError", 1),
        ({"rc": 1, "stderr": ""}, "no words", 1),
        ({"msg": "'x' is undefined\n{\"a\": 1}"}, "'x' is undefined", 3),
    ],
)
def test_a_failure_speaks_in_the_steps_own_words(
    reader: Reader, result: dict[str, Any], message: str, code: int
) -> None:
    failed = reader.read(event("runner_on_failed", 2, SEND, **result))
    assert isinstance(failed, Failed)
    assert message in failed.message
    assert "\n" not in failed.message
    assert (failed.code, failed.fatal) == (code, True)


def test_the_log_speaks_where_the_command_was_killed_before_it_could(tmp_path: Path) -> None:
    (tmp_path / "identify-errors-send.log").write_text("00:00:01 on\nespbench: disk full\n")
    failed = Reader(tmp_path).read(event("runner_on_failed", 2, SEND, rc=3))
    assert isinstance(failed, Failed)
    assert failed.message == "disk full"


def test_a_failed_end_is_told_but_does_not_fail_the_run(tmp_path: Path) -> None:
    data = SEND | {"task_path": "/x/tasks/cleanup.yml:1"}
    failed = Reader(tmp_path).read(event("runner_on_ok", 2, data, rc=3, stderr="espbench: gone"))
    assert failed == Failed(Step("cleanup", "identify-errors"), "gone", 3, fatal=False)


def test_an_ignored_failure_is_nothing(reader: Reader) -> None:
    assert reader.read(event("runner_on_failed", 2, SEND | {"ignore_errors": True}, rc=1)) is None


@pytest.mark.parametrize(("file", "code"), [("inventory", 2), ("prepare", 3)])
def test_what_the_inventory_lacks_is_wrong_usage(tmp_path: Path, file: str, code: int) -> None:
    task = {"task": "x", "task_path": f"/x/tasks/remote/{file}.yml:2", "task_uuid": "2"}
    rounds = [{"failed": False, "msg": "fine"}, {"failed": True, "msg": "no ansible_host"}]
    told = event("runner_on_failed", 2, task, msg="One or more items failed", results=rounds)
    failed = Reader(tmp_path).read(told)
    assert isinstance(failed, Failed)
    assert (failed.message, failed.code) == ("no ansible_host", code)
