from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from validator.synthetic import CREATE, START_MS, Plan, Record, Topic, source, well_formed

Judged = Callable[..., dict[str, Any]]

PLANS = {1: Plan(records=1_500), 2: Plan(records=1_500, workplace=2, seed=2)}
INPUTS = {number: source(plan, f"espbench-test-{number}") for number, plan in PLANS.items()}
# Seconds from the start, both included.
DOWNTIMES = {1: [(5.0, 12.0), (20.5, 21.0)], 2: [(-100.0, -50.0)]}


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(START_MS / 1_000 + seconds, UTC).isoformat()


def table(path: Path, rows: list[str] | None = None, more: str = "") -> dict[str, Path]:
    lines = rows or [
        f"{workplace},{number},{iso(start)},{iso(end)}"
        for workplace, spans in DOWNTIMES.items()
        for number, (start, end) in enumerate(spans)
    ]
    head = "wp_id,wp_dt_id,wp_downtime_start,wp_downtime_end" + more
    (path / "workplace.csv").write_text("\n".join([head, *lines]) + "\n")
    return {"workplace": path / "workplace.csv"}


def answers(downtimes: dict[int, list[tuple[float, float]]]) -> Topic:
    found = []
    for topic in INPUTS.values():
        for record, number, line in well_formed(topic):
            columns = line.split("\t")
            seconds = (record.timestamp_ms - START_MS) / 1_000
            spans = downtimes.get(int(columns[56]), [])
            if int(columns[4]) < 8_105 and not any(a <= seconds <= b for a, b in spans):
                found.append(Record(0, 0, record.timestamp_ms + 25, f"{number};{line}".encode()))
    found.sort(key=lambda record: record.timestamp_ms)
    return Topic("espbench-test-check-machine-power", found).renumbered()


RIGHT = answers(DOWNTIMES)


def test_right_answers(judged: Judged, tmp_path: Path) -> None:
    found = judged("q4", INPUTS, RIGHT, tables=table(tmp_path))
    assert (found["correctness"], found["exit"]) == ("correct", 0), found["witnesses"]
    assert found["counts"]["input"] == 3_000
    assert found["counts"]["matched"] + found["counts"]["borderline"] >= len(RIGHT.records) - 1
    assert len(found["load"]["streams"]) == 2


def test_who_ignores_the_downtimes_is_wrong(judged: Judged, tmp_path: Path) -> None:
    found = judged("q4", INPUTS, answers({}), tables=table(tmp_path))
    assert found["exit"] == 4
    assert found["counts"]["extra"] > 10
    assert found["counts"]["missing"] == 0
    always = judged("q4", INPUTS, answers({1: [(-1.0, 99.0)]}), tables=table(tmp_path))
    assert always["exit"] == 4
    assert always["counts"]["missing"] > 10


def test_who_ignores_a_stream_is_wrong(judged: Judged, tmp_path: Path) -> None:
    half = Topic("out", [r for r in RIGHT.records if (r.value or b"").endswith(b"\t1")])
    found = judged("q4", INPUTS, half.renumbered(), tables=table(tmp_path))
    assert (found["exit"], found["counts"]["extra"]) == (4, 0)


def test_the_same_id_of_two_workplaces_is_two_identities(judged: Judged, tmp_path: Path) -> None:
    value = RIGHT.records[5].value or b""
    other = value[:-1] + (b"2" if value.endswith(b"1") else b"1")
    records = [replace(r, value=other) if n == 5 else r for n, r in enumerate(RIGHT.records)]
    found = judged("q4", INPUTS, Topic("out", records), tables=table(tmp_path))
    assert (found["exit"], found["counts"]["missing"]) == (4, 1)


def test_no_row_is_no_downtime(judged: Judged, tmp_path: Path) -> None:
    rows = [f"9,0,{iso(0)},{iso(99)}"]
    found = judged("q4", INPUTS, answers({}), tables=table(tmp_path, rows))
    assert (found["correctness"], found["counts"]["borderline"]) == ("correct", 0)


def test_the_edge_of_a_downtime_is_borderline(judged: Judged, tmp_path: Path) -> None:
    low = [r for r, _, line in well_formed(INPUTS[1]) if int(line.split("\t")[4]) < 8_105]
    edge = (low[10].timestamp_ms - START_MS) / 1_000
    rows = [f"1,0,{iso(edge)},{iso(edge + 5)}"]
    inside = answers({1: [(edge, edge + 5)]})
    outside = answers({1: [(edge + 0.001, edge + 5)]})
    for sink in (inside, outside):
        found = judged("q4", INPUTS, sink, tables=table(tmp_path, rows))
        assert (found["correctness"], found["counts"]["borderline"]) == ("correct", 1)


def test_changes_of_the_table_must_be_seen_in_time(judged: Judged, tmp_path: Path) -> None:
    rows = [
        f"1,0,{iso(0)},{iso(99)},\\N,{iso(8)}",
        f"1,0,{iso(20)},{iso(22)},{iso(8)},",
    ]
    more = ",valid_from,valid_to"
    fast = answers({1: [(0, 7.9999), (20, 22)]})
    slow = answers({1: [(0, 13.0), (20, 22)]})
    for sink in (fast, slow):
        found = judged("q4", INPUTS, sink, tables=table(tmp_path, rows, more))
        assert found["correctness"] == "correct"
        assert found["counts"]["borderline"] > 10
    strict = judged("q4", INPUTS, slow, tables=table(tmp_path, rows, more), freshness_s=1.0)
    assert strict["correctness"] == "incorrect"
    stale = answers({1: [(0, 99)]})
    assert judged("q4", INPUTS, stale, tables=table(tmp_path, rows, more))["exit"] == 4


def test_missing_evidence(judged: Judged, tmp_path: Path) -> None:
    good = table(tmp_path)
    stamped = INPUTS | {2: Topic("in", INPUTS[2].records, CREATE)}
    assert judged("q4", stamped, RIGHT, tables=good)["correctness"] == "unknown"
    content = INPUTS[2].json_lines()
    torn = {1: INPUTS[1], 2: content[: len(content) // 2]}
    assert judged("q4", torn, RIGHT, tables=good)["correctness"] == "unknown"
    for text in (
        "",
        "a,b\n1,2\n",
        "wp_id\n",
        "\x00",
        '"',
        "wp_id,wp_downtime_start,wp_downtime_end\n1,x,y\n",
        "wp_id,wp_downtime_start,wp_downtime_end\n1,,\n",
    ):
        (tmp_path / "workplace.csv").write_text(text)
        found = judged("q4", INPUTS, RIGHT, tables=good)
        assert (found["correctness"], found["exit"]) == ("unknown", 5), text
        assert "workplace.csv" in found["problems"][0]


def test_an_empty_table_is_no_downtime(judged: Judged, tmp_path: Path) -> None:
    (tmp_path / "workplace.csv").write_text("wp_id,wp_dt_id,wp_downtime_start,wp_downtime_end\n")
    found = judged("q4", INPUTS, answers({}), tables={"workplace": tmp_path / "workplace.csv"})
    assert found["correctness"] == "correct", found["problems"]


def test_a_change_within_the_records_millisecond_may_be_seen_or_not(
    judged: Judged, tmp_path: Path
) -> None:
    low = next(r for r in RIGHT.records if (r.value or b"").endswith(b"\t1"))
    change = (low.timestamp_ms - 25 - START_MS) / 1_000 + 0.0005
    rows = [f"1,0,{iso(-100)},{iso(1_000)},{iso(change)},\\N"]
    tables = table(tmp_path, rows, ",valid_from,valid_to")
    before = answers({1: [(change, 1_000)]})
    for sink in (before, Topic("out", [r for r in before.records if r != low]).renumbered()):
        found = judged("q4", INPUTS, sink, tables=tables, freshness_s=0.0)
        assert found["correctness"] == "correct", found["witnesses"]


def test_a_record_that_comes_again_after_the_borderline_is_answered_once(
    judged: Judged, tmp_path: Path
) -> None:
    twice = low_record = next(
        record
        for record, _, line in well_formed(INPUTS[1])
        if int(line.split("\t")[4]) < 8_105 and record.timestamp_ms > START_MS + 2_000
    )
    start = (low_record.timestamp_ms - START_MS) / 1_000
    again = Topic("in", [*INPUTS[1].records])
    again.add(START_MS + 40_000, twice.value)
    # A downtime that ends with the first delivery.
    tables = table(tmp_path, [f"1,0,{iso(-100)},{iso(start)}"])
    number, _, line = (twice.value or b"").split(b";", 2)
    others = [record for record in answers({1: [(-100.0, start)]}).records if record.value != b""]
    sink = Topic("out", others).renumbered()
    sink.add(START_MS + 40_030, number + b";" + line)
    found = judged("q4", INPUTS | {1: again}, sink, tables=tables)
    assert (found["correctness"], found["counts"]["missing"]) == ("correct", 0), found["witnesses"]
    sink.records.pop()
    found = judged("q4", INPUTS | {1: again}, sink, tables=tables)
    assert (found["exit"], found["counts"]["missing"]) == (4, 1)


def test_an_answer_in_a_downtime_that_is_known_is_extra_whatever_else_is_torn(
    judged: Judged, tmp_path: Path
) -> None:
    rows = [f"1,0,{iso(5)},{iso(12)}", "1,1,torn"]
    found = judged("q4", INPUTS, answers({1: [(5, 12)]}), tables=table(tmp_path, rows))
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    found = judged("q4", INPUTS, answers({}), tables=table(tmp_path, rows))
    assert (found["correctness"], found["exit"]) == ("incorrect", 4)
