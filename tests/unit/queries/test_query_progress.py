import json
from pathlib import Path
from typing import Any

from queries.progress import ProgressLog, Totals, committed_offsets, parse_offsets


def progress(rows: int = 10, end: int = 10, partition: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "numInputRows": rows,
        "sources": [{"endOffset": {"topic": {str(partition): end}}}],
        **more,
    }


def test_batches_are_summed_up() -> None:
    totals = Totals()
    totals.add(progress(10, 10))
    totals.add(progress(5, 15))
    assert (totals.batches, totals.input_rows) == (2, 15)
    assert totals.answered == {"topic": {0: 15}}
    assert totals.malformed is None


def malformed(*offsets: int) -> dict[str, Any]:
    places = [{"partition": 0, "offset": offset} for offset in offsets]
    return {"stream-1": {"malformed": len(places), "set_aside": places}}


def test_malformed_records_are_counted_with_their_places() -> None:
    totals = Totals()
    for metrics in (malformed(9, 4), malformed()):
        totals.add(progress(observedMetrics=metrics))
    assert totals.malformed == 2
    assert totals.first_malformed == [
        {"stream": "stream-1", "partition": 0, "offset": offset} for offset in (4, 9)
    ]


def test_no_more_places_are_shown_than_anybody_reads() -> None:
    totals = Totals()
    for first in (0, 15, 30):
        totals.add(progress(observedMetrics=malformed(*range(first, first + 15))))
    assert totals.malformed == 45
    assert [place["offset"] for place in totals.first_malformed] == list(range(20))


def test_malformed_records_are_set_aside_over_all_lives_of_a_query(tmp_path: Path) -> None:
    path = tmp_path / "q-progress.jsonl"
    aside = tmp_path / "q-malformed.jsonl"
    aside.write_text("of another query\n", encoding="utf-8")
    log = ProgressLog(path)
    assert not aside.exists()
    log.add(json.dumps(progress(observedMetrics=malformed(9, 4))))
    log.close()
    again = ProgressLog(path, {"topic": {0: 10}})
    again.add(json.dumps(progress(observedMetrics=malformed(12))))
    again.close()
    places = [json.loads(line) for line in aside.read_text(encoding="utf-8").splitlines()]
    assert [place["offset"] for place in places] == [4, 9, 12]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert "set_aside" not in lines[0]


def test_a_batch_without_offsets_is_no_answer() -> None:
    totals = Totals()
    totals.add({"numInputRows": 0, "sources": [{"endOffset": None}]})
    assert totals.answered == {}


def test_offsets_come_as_text_or_read() -> None:
    assert parse_offsets('{"t":{"0":1,"12":3}}') == {"t": {0: 1, 12: 3}}
    assert parse_offsets({"t": {"0": 1}}) == {"t": {0: 1}}
    assert parse_offsets("17") == {}


def test_a_goal_is_covered_only_by_every_partition(tmp_path: Path) -> None:
    log = ProgressLog(tmp_path / "progress.jsonl")
    goal = {"topic": {0: 10, 1: 5}}
    log.add(json.dumps(progress(10, 10, partition=0)))
    assert not log.covers(goal)
    log.add(json.dumps(progress(4, 4, partition=1)))
    assert not log.covers(goal)
    log.add(json.dumps(progress(1, 5, partition=1)))
    assert log.covers(goal)
    log.close()


def test_every_event_is_kept_as_a_line(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    log = ProgressLog(path)
    log.add(json.dumps(progress(1, 1)))
    log.add(json.dumps(progress(2, 3)))
    log.close()
    log.add(json.dumps(progress(1, 4)))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["numInputRows"] for line in lines] == [1, 2]
    assert log.totals.input_rows == 4


def test_silence_is_believed_only_where_it_is_reported(tmp_path: Path) -> None:
    log = ProgressLog(tmp_path / "progress.jsonl")
    assert log.silent_s(reported=False) >= 0
    assert log.silent_s(reported=True) == 0
    log.add(json.dumps(progress(0, 0)))
    assert log.silent_s(reported=True) > 0
    log.add(json.dumps(progress(1, 1)))
    assert log.silent_s(reported=True) == 0
    log.close()


def test_an_earlier_life_is_read_from_the_checkpoint(tmp_path: Path) -> None:
    assert committed_offsets(tmp_path) == {}
    for name in ("commits", "offsets"):
        (tmp_path / name).mkdir()
    for number, end in ((9, 90), (10, 100), (11, 110)):
        text = f'v1\n{{"batchWatermarkMs":0}}\n{{"a":{{"0":{end}}}}}\n{{"b":{{"1":{end}}}}}'
        (tmp_path / "offsets" / str(number)).write_text(text, encoding="utf-8")
    for number in (9, 10):
        (tmp_path / "commits" / str(number)).write_text("v1\n{}", encoding="utf-8")
    (tmp_path / "commits" / ".11.tmp").write_text("", encoding="utf-8")
    assert committed_offsets(tmp_path) == {"a": {0: 100}, "b": {1: 100}}
