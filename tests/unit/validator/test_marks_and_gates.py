"""What stands beside correctness: clocks, latency, objective, sustainability, load."""

import json
from dataclasses import replace

import pytest

from tests.unit.validator.given import ERRORS, INPUT, PLAN, Judged, changed
from validator.synthetic import CREATE, Plan, Record, Topic, errors_sink, source
from validator.topics import Claim


def test_a_topic_without_log_append_time_has_no_latency(judged: Judged) -> None:
    for topics in (
        (Topic("in", INPUT.records, CREATE), ERRORS),
        (INPUT, Topic("out", ERRORS.records, CREATE)),
    ):
        found = judged("q3", *topics)
        assert (found["correctness"], found["exit"]) == ("correct", 0)
        assert found["latency_ms"] is None
        assert found["slo"]["met"] is None
        assert found["sustainability"]["verdict"] == "unknown"
        assert "not stamped by LogAppendTime" in found["latency_marks"][0]
    found = judged("q3", INPUT, ERRORS, {"sink": Claim(log_append_time=False)})
    assert found["latency_ms"] is None


def test_clocks_mark_the_latency_and_nothing_else(judged: Judged) -> None:
    def back(records: list[Record]) -> None:
        records[100] = replace(records[100], timestamp_ms=records[99].timestamp_ms - 10)

    found = judged("q3", changed(INPUT, back), ERRORS)
    assert (found["correctness"], found["exit"]) == ("correct", 0)
    assert found["clock"]["backwards"] == 1
    early = Topic("out", [replace(r, timestamp_ms=r.timestamp_ms - 50) for r in ERRORS.records])
    found = judged("q3", INPUT, early)
    assert found["correctness"] == "correct"
    assert found["clock"]["before_input"] == 199
    assert found["latency_marks"]
    assert found["latency_ms"]["min"] == -30
    found = judged("q3", INPUT, ERRORS, clock_offsets_ms=(1.0, -7.5))
    assert "off by -7.5 ms" in found["latency_marks"][0]


def test_few_samples_carry_few_percentiles(judged: Judged) -> None:
    def figures(count: int) -> list[str]:
        plan = Plan(records=count, error_share=1.1)
        stream = source(plan)
        found = judged("q3", stream, errors_sink(stream, plan), warmup_s=0.0)
        assert found["latency_ms"]["n"] == count
        assert (found["slo"]["met"] is None) == (count < 10)
        return [name for name, figure in found["latency_ms"].items() if figure is None]

    assert figures(1) == ["p50", "p90", "p95", "p99", "p99_9"]
    assert figures(9) == ["p90", "p95", "p99", "p99_9"]
    assert figures(10) == ["p95", "p99", "p99_9"]
    assert figures(20) == ["p99", "p99_9"]
    assert figures(100) == ["p99_9"]
    assert figures(1_000) == []


def test_the_gates(judged: Judged) -> None:
    slow = errors_sink(INPUT, Plan(delay_ms=2_000))
    found = judged("q3", INPUT, slow)
    assert (found["slo"]["met"], found["exit"]) == (False, 6)
    fine = errors_sink(INPUT, Plan(delay_ms=1_999))
    assert judged("q3", INPUT, fine)["exit"] == 0
    growing = Topic(
        "out",
        [
            replace(
                r,
                timestamp_ms=r.timestamp_ms
                + (r.timestamp_ms - ERRORS.records[0].timestamp_ms) // 10,
            )
            for r in ERRORS.records
        ],
    )
    found = judged("q3", INPUT, growing)
    assert (found["sustainability"]["verdict"], found["exit"]) == ("not sustained", 6)
    assert found["sustainability"]["latency_slope_ms_per_s"] == pytest.approx(100, rel=0.01)
    short = source(Plan(records=1_000))
    found = judged("q3", short, errors_sink(short, PLAN))
    assert (found["sustainability"]["verdict"], found["exit"]) == ("unknown", 0)


def test_the_load(judged: Judged) -> None:
    assert judged("q3", INPUT, ERRORS)["load"]["valid"] is None
    found = judged("q3", INPUT, ERRORS, rate=50.0)
    assert (found["load"]["valid"], found["exit"]) == (True, 0)
    assert found["load"]["achieved_rate"] == pytest.approx(50, rel=0.001)
    assert found["load"]["lateness_ms"]["p99"] == 2
    found = judged("q3", INPUT, ERRORS, rate=51.0)
    assert (found["load"]["valid"], found["exit"]) == (False, 5)
    assert judged("q3", INPUT, ERRORS, rate=50.4)["exit"] == 0
    late = Topic("in", [replace(r, timestamp_ms=r.timestamp_ms + 250) for r in INPUT.records])
    found = judged("q3", late, errors_sink(late, PLAN), rate=50.0)
    assert (found["load"]["valid"], found["exit"]) == (False, 5)
    assert "lateness p99 is 252 ms, 200 allowed" in found["load"]["reasons"][0]
    report = {"streams": [{"stream": 1, "asked_rate": 50, "failed": 0, "queue_full_stalls": 3}]}
    found = judged("q3", INPUT, ERRORS, sender_report=report)
    assert (found["load"]["valid"], found["exit"]) == (False, 5)
    assert judged("q3", INPUT, ERRORS, rate=50.0, duration_s=40.0)["load"]["valid"] is True
    early = judged("q3", INPUT, ERRORS, rate=50.0, duration_s=60.0)["load"]
    assert (early["valid"], early["streams"][0]["ended_early"]) == (True, True)


def test_incorrect_beats_everything(judged: Judged) -> None:
    slow = changed(errors_sink(INPUT, Plan(delay_ms=9_000)), lambda records: records.pop(0))
    assert judged("q3", INPUT, slow, rate=99.0)["exit"] == 4


def test_the_document_is_json(judged: Judged) -> None:
    json.dumps(judged("q3", b"", b""), allow_nan=False)
    json.dumps(judged("q3", INPUT, b"x"), allow_nan=False)
