import json
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import InputError, ServiceError
from queries.drain import Finish, read_goal
from queries.progress import Offsets, ProgressLog


def stream(topic: str, *ends: int) -> dict[str, Any]:
    partitions = [
        {"partition": number, "count": end, "first_offset": 0, "last_offset": end - 1}
        if end
        else {"partition": number, "count": 0, "first_offset": None, "last_offset": None}
        for number, end in enumerate(ends)
    ]
    return {"topic": topic, "partitions": partitions}


def report(path: Path, *streams: dict[str, Any], format: str = "espbench-sender/1") -> Path:
    path.write_text(json.dumps({"format": format, "streams": list(streams)}), encoding="utf-8")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Any:
    log = ProgressLog(tmp_path / "progress.jsonl")
    yield log
    log.close()


def answer(log: ProgressLog, topic: str, end: int) -> None:
    source = {"endOffset": {topic: {"0": end}}}
    log.add(json.dumps({"numInputRows": 1, "sources": [source]}))


def test_the_goal_is_one_past_the_last_offset(tmp_path: Path) -> None:
    path = report(tmp_path / "sent.json", stream("a", 10, 0, 7), stream("b", 3))
    assert read_goal(path, ["a"]) == {"a": {0: 10, 2: 7}}
    assert read_goal(path, ["a", "b"]) == {"a": {0: 10, 2: 7}, "b": {0: 3}}


def test_a_report_may_appear_later(tmp_path: Path, log: ProgressLog) -> None:
    path = tmp_path / "sent.json"
    finish = Finish(("a",), until=path)
    answer(log, "a", 10)
    assert finish.reached(log) is None
    report(path, stream("a", 11))
    assert finish.reached(log) is None
    answer(log, "a", 11)
    assert finish.reached(log) == "drained"


def test_nothing_sent_is_drained_at_once(tmp_path: Path, log: ProgressLog) -> None:
    path = report(tmp_path / "sent.json", stream("a", 0))
    assert Finish(("a",), until=path).reached(log) == "drained"


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"format": "espbench-query/1"}', '{"format": "espbench-sender/1"}'],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "sent.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="not a sender's report"):
        read_goal(path, ["a"])


def test_a_report_on_other_topics_is_refused(tmp_path: Path) -> None:
    path = report(tmp_path / "sent.json", stream("b", 1))
    with pytest.raises(InputError, match="nothing of the topic a"):
        read_goal(path, ["a"])


def test_silence_ends_it(log: ProgressLog) -> None:
    assert Finish(("a",), until_idle_s=1_000).reached(log) is None
    assert Finish(("a",), until_idle_s=-1).reached(log) == "idle"


def test_silence_with_records_unanswered_is_no_end(log: ProgressLog) -> None:
    finish = Finish(("a",), until_idle_s=-1, ends=lambda: {"a": {0: 10}})
    assert finish.reached(log) is None
    answer(log, "a", 10)
    assert Finish(("a",), until_idle_s=-1, ends=lambda: {"a": {0: 10}}).reached(log) == "idle"


def test_a_broker_that_does_not_answer_is_no_silence(log: ProgressLog) -> None:
    def ends() -> Offsets:
        raise ServiceError("Kafka does not answer", "start it")

    assert Finish(("a",), until_idle_s=-1, ends=ends).reached(log) is None


def test_without_conditions_it_never_ends(log: ProgressLog) -> None:
    answer(log, "a", 10)
    assert Finish(("a",)).reached(log) is None
