"""What is matched, missing, wrong, extra, twice, out of order: record by record."""

from dataclasses import replace

from tests.unit.validator.given import (
    COUNTS,
    ECHO,
    ERRORS,
    INPUT,
    Judged,
    changed,
    kinds,
    with_value,
)
from validator.synthetic import Plan, Record, Topic, errors_sink, identity_sink, sensor_line, source


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


def test_an_output_that_is_no_utf8_is_malformed_and_so_extra(judged: Judged) -> None:
    value = (ERRORS.records[50].value or b"").replace(b"\t", b"\xff\t", 1)
    found = judged("q3", INPUT, with_value(ERRORS, 50, value))
    assert found["counts"] == COUNTS | {"matched": 198, "missing": 1, "extra": 1}
    assert sorted(kinds(found)) == ["extra", "missing"]
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
