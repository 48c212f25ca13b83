from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from validator.synthetic import CREATE, START_MS, Topic

Judged = Callable[..., dict[str, Any]]
Rows = list[dict[str, Any]]

LINES = 400
DELAY = timedelta(milliseconds=35)


def time(epoch_ms: int) -> datetime:
    return datetime.fromtimestamp(0, UTC).replace(tzinfo=None) + timedelta(milliseconds=epoch_ms)


def stream() -> Topic:
    """Start and end of each line, 20 a second."""
    topic = Topic("espbench-test-3")
    for number in range(2 * LINES):
        due = START_MS + number * 50
        value = f"{number};{due};{number // 20 + 1}\t{number // 2 % 10 + 1}\t1\t{number % 2}"
        topic.add(due + 1, value.encode())
    return topic


INPUT = stream()


def rows() -> Rows:
    found = [
        {
            "pol_o_id": line // 10 + 1,
            "pol_ol_number": line % 10 + 1,
            "pol_number": 1,
            "pol_start_ts": time(INPUT.records[2 * line].timestamp_ms) + DELAY,
            "pol_end_ts": time(INPUT.records[2 * line + 1].timestamp_ms) + DELAY,
        }
        for line in range(LINES)
    ]
    untouched = {"pol_o_id": 9_999, "pol_ol_number": 1, "pol_number": 1}
    return [*found, untouched | {"pol_start_ts": None, "pol_end_ts": None}]


def table(path: Path, content: Rows) -> dict[str, Path]:
    pq.write_table(pa.Table.from_pylist(content), path / "lines.parquet")
    return {"production_order_line": path / "lines.parquet"}


def test_right_stamps(judged: Judged, tmp_path: Path) -> None:
    found = judged("q5", {3: INPUT}, None, tables=table(tmp_path, rows()))
    assert (found["correctness"], found["exit"]) == ("correct", 0), found["witnesses"]
    counts = found["counts"]
    assert counts["expected"] == counts["matched"] == counts["actual"] == 2 * LINES
    assert found["latency_ms"]["min"] == found["latency_ms"]["max"] == 35
    assert found["sustainability"]["verdict"] == "sustained"
    assert found["unknown_keys"] == 0
    assert found["commit_latency_ms"] is None


def test_missing_wrong_and_extra_stamps(judged: Judged, tmp_path: Path) -> None:
    def counted(place: int, **changes: Any) -> dict[str, int]:
        content = rows()
        content[place] |= changes
        found = judged("q5", {3: INPUT}, None, tables=table(tmp_path, content))
        assert (found["correctness"], found["exit"]) == ("incorrect", 4)
        assert found["witnesses"]
        return {name: found["counts"][name] for name in ("missing", "wrong", "extra")}

    arrived = time(INPUT.records[10].timestamp_ms)
    assert counted(5, pol_start_ts=None) == {"missing": 1, "wrong": 0, "extra": 0}
    early = arrived - timedelta(milliseconds=6)
    assert counted(5, pol_start_ts=early) == {"missing": 0, "wrong": 1, "extra": 0}
    late = arrived + timedelta(seconds=60)
    assert counted(5, pol_start_ts=late) == {"missing": 0, "wrong": 1, "extra": 0}
    assert counted(LINES, pol_end_ts=late) == {"missing": 0, "wrong": 0, "extra": 1}


def test_a_stamp_within_the_tolerance_is_right(judged: Judged, tmp_path: Path) -> None:
    content = rows()
    arrived = time(INPUT.records[10].timestamp_ms)
    content[5]["pol_start_ts"] = arrived - timedelta(milliseconds=5)
    found = judged("q5", {3: INPUT}, None, tables=table(tmp_path, content))
    assert found["correctness"] == "correct"


def test_replays_and_unknown_keys_change_nothing(judged: Judged, tmp_path: Path) -> None:
    again = Topic(INPUT.name, list(INPUT.records))
    again.add(INPUT.records[-1].timestamp_ms + 100, INPUT.records[10].value)
    again.add(INPUT.records[-1].timestamp_ms + 100, b"800;5;77777\t1\t1\t0")
    again.add(INPUT.records[-1].timestamp_ms + 100, b"801;5;1\t1\t1\t7")
    found = judged("q5", {3: again}, None, tables=table(tmp_path, rows()))
    assert found["correctness"] == "correct", found["problems"]
    assert found["unknown_keys"] == 1
    assert found["counts"]["malformed"] == 1
    assert found["counts"]["matched"] == 2 * LINES + 1
    assert found["latency_ms"]["n"] == 2 * LINES


def test_commit_times_are_the_headline(judged: Judged, tmp_path: Path) -> None:
    content = rows()
    for line in content[:LINES]:
        line["end_commit_ts"] = line["pol_end_ts"] + timedelta(seconds=3)
    content[LINES]["end_commit_ts"] = None
    found = judged("q5", {3: INPUT}, None, tables=table(tmp_path, content))
    assert found["commit_latency_ms"]["n"] == LINES
    assert found["commit_latency_ms"]["max"] == 3_035
    assert (found["slo"]["met"], found["exit"]) == (False, 6)


def test_missing_evidence(judged: Judged, tmp_path: Path) -> None:
    good = table(tmp_path, rows())
    torn = INPUT.json_lines()
    found = judged("q5", {3: torn[: len(torn) // 2]}, None, tables=good)
    assert (found["correctness"], found["undecided"]["extra"] > 0) == ("unknown", True)
    unstamped = Topic("in", INPUT.records, CREATE)
    found = judged("q5", {3: unstamped}, None, tables=good)
    assert (found["correctness"], found["latency_ms"]) == ("correct", None)
    (tmp_path / "lines.parquet").write_bytes((tmp_path / "lines.parquet").read_bytes()[:-50])
    assert judged("q5", {3: INPUT}, None, tables=good)["correctness"] == "unknown"


def test_a_lost_input_may_explain_an_early_stamp_but_no_end_before_its_start(
    judged: Judged, tmp_path: Path
) -> None:
    lost = INPUT.records[4]
    torn = Topic(INPUT.name, [record for record in INPUT.records if record is not lost])
    torn.add(INPUT.records[-1].timestamp_ms + 5_000, lost.value)
    torn.records[-1] = replace(torn.records[-1], offset=len(INPUT.records))
    good = table(tmp_path, rows())
    found = judged("q5", {3: torn}, None, tables=good)
    assert (found["correctness"], found["undecided"]["wrong"]) == ("unknown", 1), found["problems"]
    content = rows()
    content[9]["pol_end_ts"] = content[9]["pol_start_ts"] - timedelta(seconds=1)
    found = judged("q5", {3: torn}, None, tables=table(tmp_path, content))
    assert (found["correctness"], found["against"]) == ("incorrect", {"wrong": 1})
