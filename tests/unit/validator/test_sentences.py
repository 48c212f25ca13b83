"""Adversarial captures for single sentences of the specification."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from validator.oracles.sos import probabilities
from validator.synthetic import (
    START_MS,
    Plan,
    Record,
    Topic,
    errors_sink,
    identity_sink,
    sensor_line,
    source,
)
from validator.topics import Claim

Judged = Callable[..., dict[str, Any]]

PLAN = Plan(records=1_500, rate=50.0)
INPUT = source(PLAN)
ERRORS = errors_sink(INPUT, PLAN)


def window_values() -> dict[int, bytes]:
    """What query 1 should say of `INPUT`, by the start of the window."""
    found: dict[int, list[int]] = {}
    for record in INPUT.records:
        mf01 = int((record.value or b"").split(b"\t")[2])
        found.setdefault(record.timestamp_ms // 1_000 * 1_000, []).append(mf01)
    return {
        start: f"{sum(seen) / len(seen):.4f},{min(seen)},{max(seen)},{len(seen)}".encode()
        for start, seen in found.items()
    }


WINDOWS = window_values()


def status(partitions: int = 1) -> Topic:
    topic = Topic("sink")
    for place, (start, value) in enumerate(WINDOWS.items()):
        topic.add(start + 1_050, value, place % partitions, str(start).encode())
    return topic


def test_the_highest_offset_of_the_keys_partition_counts(judged: Judged) -> None:
    """Even where the clock of a partition runs backwards and there are several partitions."""
    topic = status(partitions=2)
    first = topic.records[3]
    late_update = replace(first, value=b"1.000,1,1,1", timestamp_ms=first.timestamp_ms + 5_000)
    records = [*topic.records[:3], late_update, *topic.records[3:]]
    found = judged("q1", INPUT, Topic("sink", records).renumbered())
    assert found["correctness"] == "correct", found["witnesses"]
    assert found["counts"]["surplus"] == 1
    assert found["clock"]["backwards"] == 1


@pytest.mark.parametrize(
    "value", [b"1_3.5,1,2,3", b" 13.5,1,2,3", b"nan,1,2,3", b"13.5,1,2", b"13.5,1,2,3,", b"", None]
)
def test_what_is_not_four_numbers_is_extra(judged: Judged, value: bytes | None) -> None:
    topic = status()
    topic.add(START_MS + 60_000, value, 0, topic.records[0].key)
    found = judged("q1", INPUT, topic)
    assert (found["correctness"], found["counts"]["extra"]) == ("incorrect", 1)


def test_a_final_answer_before_its_last_input_is_a_clock_problem(judged: Judged) -> None:
    topic = status()
    records = [replace(one, timestamp_ms=one.timestamp_ms - 1_060) for one in topic.records]
    found = judged("q1", INPUT, Topic("sink", records))
    assert found["correctness"] == "correct"
    assert found["clock"]["before_input"] == len(WINDOWS) - 1
    # After the last record but before the window's end: an update, and no clock problem.
    records = [replace(one, timestamp_ms=one.timestamp_ms - 60) for one in topic.records]
    assert judged("q1", INPUT, Topic("sink", records))["clock"]["before_input"] == 0


@pytest.mark.parametrize("lost", [0, 7, 28])
def test_without_keys_one_loss_is_one_missing(judged: Judged, lost: int) -> None:
    records = [replace(record, key=None) for record in status().records]
    records.pop(lost)
    found = judged("q1", INPUT, Topic("sink", records).renumbered())
    counts = found["counts"]
    assert (counts["missing"], counts["wrong"], counts["extra"]) == (1, 0, 0)
    records = [replace(record, key=b"") for record in status().records]
    assert judged("q1", INPUT, Topic("sink", records))["correctness"] == "correct"


@pytest.mark.parametrize(("off", "verdict"), [(0.00049, "correct"), (0.0006, "incorrect")])
def test_the_average_has_a_tolerance(judged: Judged, off: float, verdict: str) -> None:
    topic = status()
    average, rest = (topic.records[4].value or b"").split(b",", 1)
    exact = float(np.mean(mf01_of(4)))
    assert abs(exact - float(average)) < 0.0001
    value = f"{exact + off:.6f},".encode() + rest
    topic.records[4] = replace(topic.records[4], value=value)
    assert judged("q1", INPUT, topic)["correctness"] == verdict


def test_an_average_rounded_from_the_middle_is_right(judged: Judged) -> None:
    """Of 2,000 records the average often ends in half of its third decimal."""
    stream, sink = Topic("in"), Topic("out")
    for window in range(4):
        total = 0
        for number in range(2_000 * window, 2_000 * window + 2_000):
            mf01 = 13_000 + (number % 2_000 < 1_703 + window)
            total += mf01
            due = START_MS + number // 2
            stream.records.append(
                Record(0, number, due, f"{number};{due};{sensor_line(number, mf01, 1, 1)}".encode())
            )
        low, rest = divmod(total * 1_000, 2_000)
        assert rest in {0, 1_000}
        for up in {0, int(rest > 0)}:
            value = f"{(low + up) / 1_000:.3f},13000,13001,2000".encode()
            key = b"%d" % (START_MS + 1_000 * window)
            sink.add(START_MS + 1_000 * window + 1_010, value, 0, key)
    for keep in (0, 1):
        chosen = {record.key: record for record in sink.records[:: 1 if keep else -1]}
        found = judged("q1", stream, Topic("out", list(chosen.values())).renumbered())
        assert found["correctness"] == "correct", found["witnesses"]


def mf01_of(window: int) -> list[int]:
    start = list(WINDOWS)[window]
    return [
        int((record.value or b"").split(b"\t")[2])
        for record in INPUT.records
        if record.timestamp_ms // 1_000 * 1_000 == start
    ]


def outlier_streams() -> tuple[Topic, Topic]:
    """Two windows in which one record, delivered twice, has two probabilities."""
    random = np.random.default_rng(4)
    points = random.integers(13_000, 13_400, (1_000, 2))
    points[100] = points[600] = (13_450, 13_450)
    # In the second window it has company, and is less of an outlier.
    points[601:606] = random.integers(13_420, 13_430, (5, 2))
    numbers = [*range(600), 100, *range(600, 999)]
    stream, sink = Topic("in"), Topic("out")
    for place, (number, (mf01, mf02)) in enumerate(zip(numbers, points, strict=True)):
        line = sensor_line(number, mf01, mf02, 8_500)
        stream.add(START_MS + place, f"{number};{START_MS};{line}".encode())
    for begin in (0, 500):
        found = probabilities(points[begin : begin + 500].astype(float), newton=False)
        for row in np.flatnonzero(found >= 0.5).tolist():
            name, _, line = (stream.records[begin + row].value or b"").decode().split(";", 2)
            sink.add(START_MS + 2_000, f"{name};{line},{found[row]:.2f}".encode())
    return stream, sink


def test_a_record_delivered_twice_has_two_probabilities(judged: Judged) -> None:
    stream, sink = outlier_streams()
    twice = [n for n, one in enumerate(sink.records) if (one.value or b"").startswith(b"100;")]
    first, second = (float((sink.records[n].value or b"").rsplit(b",")[-1]) for n in twice)
    assert abs(first - second) > 0.02
    found = judged("q2", stream, sink)
    assert found["correctness"] == "correct", found["witnesses"]
    for row in twice:
        fewer = [one for n, one in enumerate(sink.records) if n != row]
        counts = judged("q2", stream, Topic("out", fewer).renumbered())["counts"]
        assert (counts["missing"], counts["wrong"], counts["duplicate"]) == (1, 0, 0)
        more = [*sink.records, sink.records[row]]
        counts = judged("q2", stream, Topic("out", more).renumbered())["counts"]
        assert (counts["missing"], counts["wrong"], counts["duplicate"]) == (0, 0, 1)


@pytest.mark.parametrize(("off", "wrong"), [(0.005, 0), (-0.005, 0), (0.0052, 1), (-0.0052, 1)])
def test_a_probability_has_a_tolerance(judged: Judged, off: float, wrong: int) -> None:
    stream, sink = outlier_streams()
    place = next(n for n, one in enumerate(sink.records) if (one.value or b"").startswith(b"100;"))
    text, _ = (sink.records[place].value or b"").rsplit(b",", 1)
    points = np.array(
        [[float(x) for x in (r.value or b"").split(b"\t")[2:4]] for r in stream.records[:500]]
    )
    exact = probabilities(points, newton=False)[100]
    value = text + f",{exact + off:.6f}".encode()
    sink.records[place] = replace(sink.records[place], value=value)
    assert judged("q2", stream, sink)["counts"]["wrong"] == wrong


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_malformed_record_takes_no_place(judged: Judged, partitions: int) -> None:
    stream, sink = outlier_streams()
    assert partitions
    bad = Record(0, 0, START_MS, b"not;a;record")
    records = [*stream.records[:200], bad, *stream.records[200:]]
    found = judged("q2", Topic("in", records).renumbered(), sink)
    assert found["correctness"] == "correct", found["problems"]
    assert found["counts"]["malformed"] == 1


def test_malformed_records_do_not_explain_another_loss(judged: Judged) -> None:
    """A malformed record that tells its id stands for that id alone."""
    records = list(INPUT.records)
    calm = [n for n, r in enumerate(records) if int((r.value or b"").split(b"\t")[2]) < 14_000]
    broken = (records[calm[3]].value or b"") + b"\tone too many"
    records[calm[3]] = replace(records[calm[3]], value=broken)
    found = judged("q3", Topic("in", records), ERRORS)
    assert (found["correctness"], found["counts"]["malformed"]) == ("correct", 1)
    del records[calm[9]]
    assert judged("q3", Topic("in", records).renumbered(), ERRORS)["correctness"] == "unknown"


def test_an_insane_timestamp_is_none(judged: Judged) -> None:
    for stamp in (-1, 2**62, 10**15):
        records = [*INPUT.records[:-1], replace(INPUT.records[-1], timestamp_ms=stamp)]
        found = judged("q3", Topic("in", records), ERRORS)
        assert (found["correctness"], found["latency_ms"]) == ("correct", None)
    far = [*INPUT.records[:-1], replace(INPUT.records[-1], timestamp_ms=9 * 10**13)]
    found = judged("q3", Topic("in", far), ERRORS)
    assert (found["correctness"], found["sustainability"]["verdict"]) == ("correct", "unknown")


def test_partitions_that_break_the_rule_are_noted(judged: Judged) -> None:
    plan = replace(PLAN, partitions=2)
    stream = source(plan)
    found = judged("q3", stream, errors_sink(stream, plan))
    assert (found["correctness"], found["notes"]) == ("correct", [])
    records = [replace(one, partition=1 - one.partition) for one in stream.records]
    found = judged("q3", Topic("in", records), errors_sink(stream, plan))
    assert found["correctness"] == "correct"
    assert any("not in the partition of their id" in note for note in found["notes"])


def test_partitions_that_the_capture_does_not_list(judged: Judged) -> None:
    plan = replace(PLAN, partitions=2)
    stream = source(plan)
    claims = {"source-1": Claim(complete=True, ranges={0: (0, 750)})}
    found = judged("q3", stream, errors_sink(stream, plan), claims)
    assert found["correctness"] == "unknown"
    assert "does not list" in found["problems"][0]


@pytest.mark.parametrize("filling", [b"\0", b"\n", b"x\n", b"{}\n"])
def test_a_gzip_bomb_is_named(judged: Judged, filling: bytes, monkeypatch: Any) -> None:
    monkeypatch.setattr("validator.jsonlines.BOMB_BYTES", 1 << 26)
    monkeypatch.setattr("validator.jsonlines.BOMB_RATIO", 10)
    bomb = gzip.compress(filling * (80_000_000 // len(filling)))
    found = judged("q3", INPUT, bomb)
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    assert any("bomb" in one or "longer" in one or "stopped" in one for one in found["problems"])


def test_stamps_are_exact_to_the_microsecond(judged: Judged, tmp_path: Path) -> None:
    stream = Topic("in")
    rows = ["pol_o_id,pol_ol_number,pol_number,pol_start_ts,pol_end_ts"]
    for line in range(1, 21):
        stream.add(START_MS + line, f"{line - 1};{START_MS};{line}\t1\t1\t0".encode())
        when = datetime.fromtimestamp(START_MS / 1_000, UTC).replace(tzinfo=None)
        when += timedelta(milliseconds=line, microseconds=12_345)
        rows.append(f"{line},1,1,{when.isoformat()},\\N")
    path = tmp_path / "table.csv"
    path.write_text("\n".join(rows))
    tables = {"production_order_line": path}
    found = judged("q5", {3: stream}, None, tables=tables)
    assert found["correctness"] == "correct", found["problems"]
    assert found["latency_ms"]["min"] == found["latency_ms"]["max"] == 12.345
    path.write_text("\n".join([*rows, rows[-1]]))
    found = judged("q5", {3: stream}, None, tables=tables)
    assert found["correctness"] == "unknown"
    assert "occurs twice" in found["problems"][0]


def test_the_first_answer_by_time_gives_the_latency(judged: Judged) -> None:
    plan = replace(PLAN, records=200)
    stream = source(plan)
    sink = identity_sink(stream, plan)
    again = [replace(one, timestamp_ms=one.timestamp_ms - 7) for one in sink.records]
    found = judged("q0", stream, Topic("out", [*sink.records, *again]).renumbered())
    assert found["counts"]["duplicate"] == 200
    assert found["latency_ms"]["max"] == 13
    found = judged(
        "q0", stream, Topic("out", [*sink.records, *again]).renumbered(), guarantee="exactly-once"
    )
    assert (found["correctness"], found["exit"]) == ("incorrect", 4)
