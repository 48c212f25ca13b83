"""What section 5 of the specification says of evidence, case by case."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from validator.synthetic import (
    CREATE,
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

PLAN = Plan()
INPUT = source(PLAN)
ERRORS = errors_sink(INPUT, PLAN)
ECHO = identity_sink(INPUT, PLAN)
COUNTS = {
    "input": 2_000,
    "expected": 199,
    "actual": 199,
    "matched": 199,
    "missing": 0,
    "extra": 0,
    "wrong": 0,
    "duplicate": 0,
    "out_of_order": 0,
    "surplus": 0,
    "borderline": 0,
    "malformed": 0,
}


def changed(topic: Topic, change: Callable[[list[Record]], object]) -> Topic:
    """A copy of a topic with a change to its list of records, offsets running again."""
    records = list(topic.records)
    change(records)
    return Topic(topic.name, records, topic.tstype).renumbered()


def with_value(topic: Topic, row: int, value: bytes | None) -> Topic:
    return changed(
        topic, lambda records: records.__setitem__(row, replace(records[row], value=value))
    )


def kinds(document: dict[str, Any]) -> list[str]:
    return [witness["kind"] for witness in document["witnesses"]]


def test_a_right_answer_is_correct(judged: Judged) -> None:
    found = judged("q3", INPUT, ERRORS)
    assert found["correctness"] == "correct"
    assert found["counts"] == COUNTS
    assert found["witnesses"] == []
    assert found["problems"] == []
    assert found["exit"] == 0
    assert found["query"] == "identify-errors"
    assert found["format"] == "espbench-verdict/1"
    assert judged("identity", INPUT, ECHO)["exit"] == 0


def test_a_lost_output_is_one_missing(judged: Judged) -> None:
    found = judged("q3", INPUT, changed(ERRORS, lambda records: records.pop(50)))
    assert found["correctness"] == "incorrect"
    assert found["counts"] == COUNTS | {"actual": 198, "matched": 198, "missing": 1}
    (witness,) = found["witnesses"]
    lost = ERRORS.records[50].value or b""
    number = int(lost.split(b";")[0])
    assert witness == {
        "kind": "missing",
        "topic": INPUT.name,
        "partition": 0,
        "offset": number,
        "expected": lost.decode(),
        "actual": None,
    }
    assert found["exit"] == 4


def test_an_altered_output_is_one_wrong(judged: Judged) -> None:
    value = ERRORS.records[50].value or b""
    altered = value.replace(b"0193", b"0194")
    found = judged("q3", INPUT, with_value(ERRORS, 50, altered))
    assert found["counts"] == COUNTS | {"matched": 198, "wrong": 1}
    (witness,) = found["witnesses"]
    assert (witness["kind"], witness["topic"]) == ("wrong", ERRORS.name)
    assert (witness["partition"], witness["offset"]) == (0, 50)
    assert (witness["expected"], witness["actual"]) == (value.decode(), altered.decode())
    assert found["exit"] == 4


def test_another_identity_is_missing_and_extra(judged: Judged) -> None:
    value = ERRORS.records[50].value or b""
    for altered in (b"9" + value, value[:-1] + b"2"):
        found = judged("q3", INPUT, with_value(ERRORS, 50, altered))
        assert found["counts"] == COUNTS | {"matched": 198, "missing": 1, "extra": 1}
        assert found["exit"] == 4


def test_a_malformed_output_is_extra(judged: Judged) -> None:
    for value in (b"garbage", b"", None, b"\xff\xfe", b"5;1\t2", b"x;" + b"\t" * 56):
        added = changed(ERRORS, lambda r, v=value: r.append(replace(r[-1], value=v)))  # type: ignore[misc]
        found = judged("q3", INPUT, added)
        assert found["counts"] == COUNTS | {"actual": 200, "extra": 1}
        assert (found["correctness"], kinds(found)) == ("incorrect", ["extra"])


def test_an_output_that_no_input_calls_for_is_extra(judged: Judged) -> None:
    number = next(
        n
        for n in range(100)
        if all((r.value or b"").split(b";")[0] != b"%d" % n for r in ERRORS.records)
    )
    line = (INPUT.records[number].value or b"").split(b";", 2)[2]
    found = judged(
        "q3",
        INPUT,
        changed(ERRORS, lambda r: r.append(replace(r[-1], value=b"%d;" % number + line))),
    )
    assert found["counts"] == COUNTS | {"actual": 200, "extra": 1}
    assert found["exit"] == 4


def test_duplicates_are_judged_by_the_guarantee(judged: Judged) -> None:
    twice = changed(ERRORS, lambda r: r.append(replace(r[7], timestamp_ms=r[-1].timestamp_ms)))
    found = judged("q3", INPUT, twice)
    assert found["counts"] == COUNTS | {"actual": 200, "duplicate": 1}
    assert (found["correctness"], found["exit"], kinds(found)) == ("correct", 0, ["duplicate"])
    assert found["latency_ms"]["max"] == 20
    found = judged("q3", INPUT, twice, guarantee="exactly-once")
    assert (found["correctness"], found["exit"]) == ("incorrect", 4)


def test_the_first_by_time_gives_the_latency(judged: Judged) -> None:
    late_first = changed(
        ERRORS,
        lambda r: r.insert(0, replace(r[7], timestamp_ms=r[7].timestamp_ms + 5_000)),
    )
    found = judged("q3", INPUT, late_first)
    assert found["counts"]["duplicate"] == 1
    assert found["latency_ms"]["max"] == 20


def test_out_of_order_is_counted_and_not_wrong(judged: Judged) -> None:
    def swap(records: list[Record]) -> None:
        records[5], records[6] = records[6], records[5]

    found = judged("q3", INPUT, changed(ERRORS, swap))
    assert found["counts"] == COUNTS | {"out_of_order": 1}
    assert (found["correctness"], found["exit"], kinds(found)) == ("correct", 0, ["out_of_order"])


def test_a_source_record_delivered_twice_expects_two_outputs(judged: Judged) -> None:
    row = next(
        n for n, r in enumerate(INPUT.records) if int((r.value or b"").split(b"\t")[2]) > 14_963
    )
    twice = changed(INPUT, lambda r: r.insert(row, r[row]))
    found = judged("q3", twice, ERRORS)
    assert (found["correctness"], found["counts"]["missing"]) == ("incorrect", 1)
    both = changed(ERRORS, lambda r: r.insert(0, r[0]))
    found = judged("q3", twice, both, guarantee="exactly-once")
    assert found["correctness"] == "correct"
    assert found["counts"]["matched"] == 200


def test_the_order_of_lines_in_a_file_does_not_matter(judged: Judged) -> None:
    back = Topic(ERRORS.name, ERRORS.records[::-1])
    assert judged("q3", Topic("in", INPUT.records[::-1]), back)["counts"] == COUNTS


def test_malformed_input_calls_for_nothing_and_is_shown(judged: Judged) -> None:
    line = sensor_line(5, 20_000, 1, 1)
    plan = Plan(records=200)
    stream = source(plan)
    for row, value in enumerate(
        (
            None,
            b"",
            b"no record",
            b"5;7",
            f"x;7;{line}".encode(),
            f"5;7;{line}\t1".encode(),
            f"5;7;{line}".replace("20000", "20000.5").encode(),
            f"5;7;{line}".encode().replace(b"0193", b"\xff"),
        )
    ):
        bad = with_value(stream, row, value)
        sink = errors_sink(bad, plan)
        found = judged("q3", bad, sink)
        assert (found["correctness"], found["exit"]) == ("correct", 0), value
        assert found["counts"]["malformed"] == 1
        assert kinds(found) == ["malformed"]
        assert found["witnesses"][0]["offset"] == row
        answered = changed(sink, lambda r: r.append(replace(r[-1], value=f"5;{line}".encode())))
        assert judged("q3", bad, answered)["exit"] == 4

        echo = identity_sink(bad, plan)
        found = judged("q0", bad, echo)
        assert (found["correctness"], found["counts"]["malformed"]) == ("correct", 1)
        assert found["counts"]["matched"] == 200
        found = judged("q0", bad, changed(echo, lambda r, n=row: r.pop(n)))  # type: ignore[misc]
        assert (found["correctness"], found["counts"]["missing"]) == ("incorrect", 1)


def test_identity_judges_every_byte(judged: Judged) -> None:
    value = ECHO.records[9].value or b""
    found = judged("q0", INPUT, with_value(ECHO, 9, value.replace(b"0193", b"0199")))
    assert (found["counts"]["wrong"], found["counts"]["missing"]) == (1, 0)
    found = judged("q0", INPUT, with_value(ECHO, 9, None))
    assert (found["counts"]["extra"], found["counts"]["missing"]) == (1, 1)
    due = value.split(b";")[1]
    found = judged("q0", INPUT, with_value(ECHO, 9, value.replace(due, b"1" + due)))
    assert (found["counts"]["wrong"], found["exit"]) == (1, 4)


def test_an_empty_sink_is_complete_evidence(judged: Judged) -> None:
    for empty in (b"", gzip.compress(b"")):
        found = judged("q3", INPUT, empty)
        assert (found["correctness"], found["exit"]) == ("incorrect", 4)
        assert found["counts"]["missing"] == 199
        assert found["slo"]["met"] is None
        assert found["latency_ms"]["n"] == 0


def test_nothing_expected_is_unknown(judged: Judged) -> None:
    found = judged("q3", b"", b"")
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    calm = source(Plan(error_share=0))
    assert judged("q3", calm, b"")["correctness"] == "unknown"
    assert judged("q3", calm, ERRORS)["correctness"] == "incorrect"


def test_a_torn_sink_proves_no_absence(judged: Judged) -> None:
    torn = ERRORS.json_lines()[:-700]
    found = judged("q3", INPUT, torn)
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    assert any("sink.jsonl, line" in problem and "torn" in problem for problem in found["problems"])
    wrong = with_value(ERRORS, 3, (ERRORS.records[3].value or b"").replace(b"0193", b"0194"))
    found = judged("q3", INPUT, wrong.json_lines()[:-700])
    assert (found["correctness"], found["exit"]) == ("incorrect", 4)
    garbage = with_value(ERRORS, 3, b"garbage")
    assert judged("q3", INPUT, garbage.json_lines()[:-700])["exit"] == 4


def test_a_torn_sink_is_unknown_even_if_nothing_is_missing(judged: Judged) -> None:
    assert judged("q3", INPUT, ERRORS.json_lines() + b'{"topic')["exit"] == 5


def test_a_torn_source_leaves_later_outputs_undecided(judged: Judged) -> None:
    content = INPUT.json_lines()
    torn = content[: len(content) // 2 + 7]
    for query, sink in (("q3", ERRORS), ("q0", ECHO)):
        found = judged(query, torn, sink)
        assert (found["correctness"], found["exit"]) == ("unknown", 5)
        assert found["undecided"]["extra"] == found["counts"]["extra"] > 0
    lost = changed(ERRORS, lambda records: records.pop(3))
    assert judged("q3", torn, lost)["correctness"] == "incorrect"
    impossible = changed(
        ERRORS,
        lambda r: r.append(
            replace(r[-1], value=f"1999;{sensor_line(1999, 14_000, 1, 1)}".encode())
        ),
    )
    assert judged("q3", torn, impossible)["correctness"] == "incorrect"


def test_a_gap_in_offsets_is_missing_evidence(judged: Judged) -> None:
    gap = Topic(ERRORS.name, ERRORS.records[:80] + ERRORS.records[81:])
    found = judged("q3", INPUT, gap)
    assert (found["correctness"], found["counts"]["missing"]) == ("unknown", 1)
    assert "partition 0: offset 80 is missing" in found["problems"][0]
    said = judged("q3", INPUT, gap, {"sink": Claim(complete=True)})
    assert said["correctness"] == "incorrect"
    said = judged("q3", INPUT, gap, {"sink": Claim(transactional=True)})
    assert (said["correctness"], said["latency_label"]) == ("incorrect", "append, not commit")
    spaced = Topic(ERRORS.name, [replace(r, offset=2 * r.offset) for r in ERRORS.records])
    assert judged("q3", INPUT, spaced)["correctness"] == "unknown"
    assert judged("q3", INPUT, spaced, {"sink": Claim(transactional=True)})["exit"] == 0
    assert judged("q3", INPUT, spaced, {"sink": Claim(complete=True)})["exit"] == 0


def test_the_head_of_a_sink_file_cut_off_proves_no_absence(judged: Judged) -> None:
    found = judged("q3", INPUT, Topic(ERRORS.name, ERRORS.records[10:]))
    assert (found["correctness"], found["counts"]["missing"]) == ("unknown", 10)
    later = Topic(ERRORS.name, [replace(r, offset=r.offset + 500) for r in ERRORS.records])
    assert judged("q3", INPUT, later)["correctness"] == "correct"


def test_a_declared_range_must_be_there(judged: Judged) -> None:
    for ranges in ({0: (0, 200)}, {0: (0, 199), 1: (0, 5)}):
        found = judged("q3", INPUT, ERRORS, {"sink": Claim(ranges=ranges)})
        assert (found["correctness"], found["exit"]) == ("unknown", 5)
    found = judged("q3", INPUT, ERRORS, {"sink": Claim(ranges={0: (0, 199), 1: (7, 7)})})
    assert found["correctness"] == "correct"
    found = judged("q3", INPUT, ERRORS, {"sink": Claim(complete=False)})
    assert found["correctness"] == "unknown"
    found = judged("q3", INPUT, ERRORS, {"source-1": Claim(complete=False)})
    assert found["correctness"] == "unknown"


def test_a_source_gap_is_missing_evidence(judged: Judged) -> None:
    calm = next(
        n for n, r in enumerate(INPUT.records) if int((r.value or b"").split(b"\t")[2]) < 14_963
    )
    gap = Topic(INPUT.name, INPUT.records[:calm] + INPUT.records[calm + 1 :])
    assert judged("q3", gap, ERRORS)["correctness"] == "unknown"


def test_ids_must_run_from_zero(judged: Judged) -> None:
    calm = next(
        n for n, r in enumerate(INPUT.records) if int((r.value or b"").split(b"\t")[2]) < 14_963
    )
    lacking = changed(INPUT, lambda records: records.pop(calm))
    found = judged("q3", lacking, ERRORS)
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    assert f"the first is {calm}" in found["problems"][0]
    report = {"streams": [{"stream": 1, "handed": 2000, "acknowledged": 1999, "failed": 1}]}
    found = judged("q3", lacking, ERRORS, sender_report=report)
    assert found["correctness"] == "correct"
    assert (found["load"]["valid"], found["exit"]) == (False, 5)
    silent = {"streams": [{"stream": 1, "acknowledged": 1999, "failed": 0}]}
    assert judged("q3", lacking, ERRORS, sender_report=silent)["correctness"] == "unknown"
    late = changed(INPUT, lambda records: records.__delitem__(slice(0, calm + 1)))
    assert judged("q3", late, ERRORS)["correctness"] != "correct"


def test_the_senders_report_notices_a_source_cut_at_a_line(judged: Judged) -> None:
    cut = Topic(INPUT.name, INPUT.records[:1_000])
    sink = errors_sink(cut, PLAN)
    assert judged("q3", cut, sink)["correctness"] == "correct"
    report = {"streams": [{"stream": 1, "acknowledged": 2000, "failed": 0}]}
    found = judged("q3", cut, ERRORS, sender_report=report)
    assert found["correctness"] == "unknown"


def test_repeated_offsets_are_no_file_of_one_topic(judged: Judged) -> None:
    found = judged("q3", INPUT, ERRORS.json_lines() * 2)
    assert (found["correctness"], found["counts"]["duplicate"]) == ("unknown", 0)
    found = judged("q3", INPUT.json_lines() * 2, ERRORS)
    assert (found["correctness"], found["counts"]["input"]) == ("unknown", 2_000)


def test_foreign_files_are_named(judged: Judged) -> None:
    found = judged("q3", INPUT, b"id;line\n1;2\n")
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    assert "sink.jsonl, line 1: not JSON" in found["problems"][0]
    assert judged("q3", b"\x89PNG\r\n\x1a\n" + bytes(100), ERRORS)["exit"] == 5


def test_several_partitions(judged: Judged) -> None:
    plan = Plan(partitions=3)
    several = source(plan)
    sink = errors_sink(several, plan)
    found = judged("q3", several, sink)
    assert found["counts"] == COUNTS
    assert found["exit"] == 0
    elsewhere = Topic("out", [replace(r, partition=0) for r in sink.records]).renumbered()
    assert judged("q3", several, elsewhere)["counts"] == COUNTS
    gap = Topic("out", [r for r in sink.records if (r.partition, r.offset) != (1, 3)])
    assert judged("q3", several, gap)["correctness"] == "unknown"


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
