"""What a person sees of a run."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from espbench import logs
from espbench.runs.events import Began, Ended, Skipped, Step
from espbench.runs.view import Follower, Numbers, View

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_line_counts_once_it_is_whole(tmp_path: Path) -> None:
    file, follower = tmp_path / "a.log", Follower()
    assert follower.new_lines(file) == []
    file.write_text("one\ntw")
    assert follower.new_lines(file) == ["one"]
    file.write_text("one\ntwo\nthree\n")
    assert follower.new_lines(file) == ["two", "three"]
    assert follower.new_lines(file) == []


def test_numbers_come_from_the_sender_and_the_query() -> None:
    numbers = Numbers()
    assert str(numbers) == ""
    assert not numbers.hear("00:00:01 sending starts at 00:00:03 UTC")
    assert numbers.hear("00:00:05 sending: 2,008 of 10,000")
    assert str(numbers) == "sent 2,008 of 10,000"
    for line in (json.dumps({"numInputRows": 1500}), "torn {", json.dumps({"numInputRows": 300})):
        numbers.batch(line)
    assert numbers.answers() == "answered at least 1,800, lag at most 208"


def test_steps_and_their_words_are_shown_but_skipped_ones_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.set_up()
    (tmp_path / "old.log").write_text("of an earlier attempt\n")
    with View(tmp_path, quiet=False) as view:
        reset, send = Step("reset", "identity"), Step("send", "identity")
        view.take(Began(reset, NOW))
        view.take(Skipped(reset))
        view.take(Began(send, NOW))
        view.take(Ended(send, NOW, 1.0, ""))
        (tmp_path / "identity-query-progress.jsonl").write_text('{"numInputRows": 5}\n')
        (tmp_path / "identity-send.log").write_text("sending: 7 of 9\n")
        view.follow(at_once=True)
    shown = capsys.readouterr().err
    assert "identity: send\n" in shown
    assert "reset" not in shown
    assert "    sending: 7 of 9, answered at least 5, lag at most 2\n" in shown
    assert "earlier" not in shown


def test_a_quiet_view_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(quiet=True)
    with View(tmp_path, quiet=True) as view:
        view.take(Began(Step("load"), NOW))
        (tmp_path / "load.log").write_text("loading\n")
        view.take(Ended(Step("load"), NOW, 1.0, ""))
    assert capsys.readouterr().err == ""
