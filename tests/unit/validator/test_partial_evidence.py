"""What incomplete evidence still proves, and how it is counted."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from validator.capturedir import Overrides, read_capture
from validator.csvfile import read_csv
from validator.judge import judge
from validator.synthetic import (
    CREATE,
    START_MS,
    Plan,
    Record,
    Topic,
    errors_sink,
    sensor_line,
    source,
    write_capture,
)
from validator.tables import MAX_BAD_ROWS, read_table

Judged = Callable[..., dict[str, Any]]

LOW = 8_000
HEADER = "wp_id,wp_dt_id,wp_downtime_start,wp_downtime_end"
LINES = "pol_o_id,pol_ol_number,pol_number,pol_start_ts,pol_end_ts"


def time(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1_000, UTC).replace(tzinfo=None).isoformat()


def low_streams() -> tuple[dict[int, Topic | bytes], Topic]:
    """Ten low records a stream, 100 ms apart, and the answers to all of them."""
    sink = Topic("out")
    streams: dict[int, Topic | bytes] = {}
    for number in (1, 2):
        topic = Topic(f"in-{number}")
        for row in range(10):
            line = sensor_line(row, 14_000, 14_000, LOW, number)
            when = START_MS + 100 * row
            topic.add(when, f"{row};{when};{line}".encode())
            sink.add(when + 20, f"{row};{line}".encode())
        streams[number] = topic
    return streams, sink


def downtimes(tmp_path: Path, text: str) -> dict[str, Path]:
    path = tmp_path / "workplace.csv"
    path.write_text(text)
    return {"workplace": path}


def borderline_case(tmp_path: Path) -> dict[str, Path]:
    """A downtime that begins exactly with the last record of stream 1."""
    row = f"1,0,{time(START_MS + 900)},{time(START_MS + 5_000)}"
    return downtimes(tmp_path, f"{HEADER}\n{row}\n")


@pytest.mark.parametrize("present", [True, False])
def test_the_borderline_is_counted_and_shown(judged: Judged, tmp_path: Path, present: bool) -> None:
    streams, sink = low_streams()
    if not present:
        sink.records = [r for r in sink.records if r.timestamp_ms != START_MS + 920]
        sink.add(START_MS + 920, f"9;{sensor_line(9, 14_000, 14_000, LOW, 2)}".encode())
        sink = sink.renumbered()
    found = judged("q4", streams, sink, tables=borderline_case(tmp_path))
    assert found["correctness"] == "correct", found["witnesses"]
    assert (found["counts"]["borderline"], found["counts"]["expected"]) == (1, 19)
    (shown,) = [one for one in found["witnesses"] if one["kind"] == "borderline"]
    assert (shown["topic"], shown["offset"]) == ("in-1", 9)
    assert (shown["actual"] is not None) == present


def test_a_wrong_answer_at_the_borderline_is_expected_and_wrong(
    judged: Judged, tmp_path: Path
) -> None:
    streams, sink = low_streams()
    row = next(n for n, r in enumerate(sink.records) if (r.value or b"").startswith(b"9;"))
    value = (sink.records[row].value or b"").replace(b"0193", b"0194")
    sink.records[row] = replace(sink.records[row], value=value)
    found = judged("q4", streams, sink, tables=borderline_case(tmp_path))
    counts = found["counts"]
    assert (found["correctness"], counts["wrong"], counts["borderline"]) == ("incorrect", 1, 1)
    assert counts["expected"] == counts["matched"] + counts["missing"] + counts["wrong"] == 20


@pytest.mark.parametrize(
    "text", ["", f"{HEADER}\n1,0,2020-01-01\n", f"{HEADER}\n1,0,x,y\n", "a,b\n1,2\n"]
)
def test_without_downtimes_an_impossible_answer_is_still_incorrect(
    judged: Judged, tmp_path: Path, text: str
) -> None:
    streams, sink = low_streams()
    tables = downtimes(tmp_path, text)
    found = judged("q4", streams, sink, tables=tables)
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    sink.add(START_MS + 5_000, f"4;{sensor_line(4, 14_000, 14_000, 8_105)}".encode())
    found = judged("q4", streams, sink, tables=tables)
    assert (found["correctness"], found["exit"]) == ("incorrect", 4)


def test_no_downtimes_at_all(judged: Judged, tmp_path: Path) -> None:
    streams, sink = low_streams()
    for text in (HEADER, HEADER + "\n", HEADER.replace(",", ", ") + "\r\n"):
        found = judged("q4", streams, sink, tables=downtimes(tmp_path, text))
        assert found["correctness"] == "correct", found["problems"]


PLAN = Plan(records=300)
INPUT = source(PLAN)


def status(topic: Topic) -> Topic:
    windows: dict[int, list[int]] = {}
    for record in topic.records:
        mf01 = int((record.value or b"").split(b"\t")[2])
        windows.setdefault(record.timestamp_ms // 1_000 * 1_000, []).append(mf01)
    sink = Topic("out")
    for start, seen in windows.items():
        value = f"{sum(seen) / len(seen):.3f},{min(seen)},{max(seen)},{len(seen)}"
        sink.add(start + 1_020, value.encode(), 0, b"%d" % start)
    return sink


def altered(topic: Topic, row: int, value: bytes) -> Topic:
    records: list[Record] = list(topic.records)
    records[row] = replace(records[row], value=value)
    return Topic(topic.name, records)


def test_a_torn_sink_of_updates(judged: Judged) -> None:
    """What counts only some records of its window may have been updated in the torn part."""
    right = status(INPUT)
    average, low, high, count = (right.records[1].value or b"").split(b",")
    part = b",".join([average, low, high, b"%d" % (int(count) - 1)])
    wrong = b",".join([b"%.3f" % (float(average) + 1), low, high, count])
    beyond = b",".join([b"%.3f" % (float(high) + 1), low, high, b"%d" % (int(count) - 1)])
    for value, verdict in ((part, "unknown"), (wrong, "incorrect"), (beyond, "incorrect")):
        torn = altered(right, 1, value).json_lines()[:-20]
        assert judged("q1", INPUT, torn)["correctness"] == verdict, value


def test_without_windows_a_malformed_answer_is_still_extra(judged: Judged) -> None:
    unstamped = Topic("in", INPUT.records, CREATE)
    right = status(INPUT)
    assert judged("q1", unstamped, right)["correctness"] == "unknown"
    found = judged("q1", unstamped, altered(right, 2, b"1,2,3"))
    assert (found["correctness"], found["counts"]["extra"]) == ("incorrect", 1)
    (shown,) = [one for one in found["witnesses"] if one["kind"] == "extra"]
    assert (shown["partition"], shown["offset"]) == (0, 2)


def stamped_lines(count: int) -> tuple[Topic, list[str]]:
    topic = Topic("in")
    rows = [LINES]
    for line in range(1, count + 1):
        topic.add(START_MS + line, f"{line - 1};{START_MS};{line}\t1\t1\t0".encode())
        rows.append(f"{line},1,1,{time(START_MS + line + 20)},")
    return topic, rows


def test_a_torn_table_proves_no_absence_but_what_is_wrong(judged: Judged, tmp_path: Path) -> None:
    stream, rows = stamped_lines(20)
    path = tmp_path / "lines.csv"
    tables = {"production_order_line": path}
    rows[9] = rows[9][:-12]
    torn = [*rows[:-1], rows[-1][:6]]
    path.write_text("\n".join(torn))
    found = judged("q5", {3: stream}, None, tables=tables)
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    assert any("lines.csv, line 21: torn" in problem for problem in found["problems"])
    torn[5] = f"5,1,1,{time(START_MS - 1_000)},"
    path.write_text("\n".join(torn))
    found = judged("q5", {3: stream}, None, tables=tables)
    assert (found["correctness"], found["counts"]["wrong"]) == ("incorrect", 1)


def test_bad_rows_of_a_table_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    rows = [f"{number},1,1,2024-01-01T00:00:00,\\N" for number in range(100)]
    rows[40] = "40,1,1"
    rows[60] = "sixty,1,1,,"
    rows[61] = "61,1,1,yesterday,"
    path.write_text("\n".join([LINES, *rows]))
    table = read_table("production_order_line", path)
    assert table.rows is not None
    assert table.rows.num_rows == 97
    assert [problem.line for problem in table.evidence.problems] == [42, 62, 63]
    for number in range(MAX_BAD_ROWS + 1):
        rows[number] = f"x{number},1,1,,"
    path.write_text("\n".join([LINES, *rows]))
    assert read_table("production_order_line", path).rows is None


def test_a_last_field_that_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "workplace.csv"
    rows = [f"{n},0,2024-01-01T00:00:00.000500,2024-01-02T00:00:00.000500" for n in range(3)]
    for end, count in (("\n", 3), ("", 3)):
        path.write_text("\n".join([HEADER, *rows]) + end)
        assert read_csv(path).table.num_rows == count
    path.write_text("\n".join([HEADER, *rows])[:-5])
    found = read_csv(path)
    assert (found.table.num_rows, found.torn_lines) == (2, (4,))
    # As Python writes a time without microseconds.
    path.write_text("\n".join([HEADER, *rows])[:-7])
    assert read_csv(path).table.num_rows == 3


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, 10**400, True, "7", [7], 1e300])
def test_numbers_that_make_no_sense_are_none(tmp_path: Path, number: Any) -> None:
    topics = {"source-1": INPUT, "sink": errors_sink(INPUT, PLAN)}
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    place = write_capture(
        tmp_path / "capture",
        "q3",
        topics,
        rate=number,
        warmup=number,
        duration=number,
        freshness=number,
        clocks=[{"offset_ms": number}, {"a": {"offset_ms": 7}}, deep],
        sender_report={"streams": [{"stream": 1, "asked_rate": number, "failed": number}]},
    )
    request = read_capture(place, Overrides())
    assert (request.rate, request.warmup_s, request.duration_s) == (None, 10.0, None)
    document = judge(request).document()
    json.dumps(document, allow_nan=False)
    assert document["correctness"] == "correct"
    assert document["load"]["valid"] is None


def test_a_rate_of_the_capture_stands_in_for_a_report_without_one(tmp_path: Path) -> None:
    topics = {"source-1": INPUT, "sink": errors_sink(INPUT, PLAN)}
    for streams, rate in (
        ([{"stream": 1, "failed": 0}], 50.0),
        ([{"stream": 1, "asked_rate": 60}], None),
        (3, 50.0),
    ):
        place = write_capture(
            tmp_path / "capture", "q3", topics, rate=50.0, sender_report={"streams": streams}
        )
        assert read_capture(place, Overrides()).rate == rate
