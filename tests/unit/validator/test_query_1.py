from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from validator.synthetic import CREATE, Plan, Record, Topic, source, well_formed

Judged = Callable[..., dict[str, Any]]

PLAN = Plan(records=2_000, partitions=2)
INPUT = source(PLAN)


def aggregates(topic: Topic) -> dict[int, list[int]]:
    found = defaultdict(list)
    for record, _, line in well_formed(topic):
        found[record.timestamp_ms // 1_000 * 1_000].append(int(line.split("\t")[2]))
    return dict(sorted(found.items()))


def shown(values: list[int]) -> bytes:
    average = sum(values) / len(values)
    return f"{average:.4f},{min(values)},{max(values)},{len(values)}".encode()


def answers(topic: Topic, *, keys: bool = True) -> Topic:
    sink = Topic("espbench-test-check-sensor-status")
    for start, values in aggregates(topic).items():
        key = str(start).encode() if keys else None
        sink.add(start + 1_030, shown(values), key=key)
    return sink


RIGHT = answers(INPUT)
LAST = len(RIGHT.records) - 1


def changed(topic: Topic, change: Callable[[list[Record]], object]) -> Topic:
    records = list(topic.records)
    change(records)
    return Topic(topic.name, records).renumbered()


def test_right_windows(judged: Judged) -> None:
    found = judged("q1", INPUT, RIGHT)
    assert (found["correctness"], found["exit"]) == ("correct", 0), found["witnesses"]
    assert found["counts"]["expected"] == found["counts"]["matched"] == LAST
    assert found["latency_ms"]["max"] == 30
    assert found["update_latency_ms"]["n"] == LAST
    assert 30 < found["update_latency_ms"]["max"] < 1_030


def test_the_last_window_is_not_judged(judged: Judged) -> None:
    for change, unjudged in (
        (lambda r: r.pop(), 0),
        (lambda r: r.__setitem__(LAST, replace(r[LAST], value=b"1,2,3,4")), 1),
    ):
        found = judged("q1", INPUT, changed(RIGHT, change))
        assert found["correctness"] == "correct"
        assert found["not_judged"] == unjudged
        assert found["counts"]["surplus"] == found["counts"]["extra"] == 0


def test_lost_altered_and_unasked_windows(judged: Judged) -> None:
    found = judged("q1", INPUT, changed(RIGHT, lambda r: r.pop(7)))
    assert (found["exit"], found["counts"]["missing"]) == (4, 1)
    start = RIGHT.records[7].key
    assert found["witnesses"][0]["key"] == (start or b"").decode()
    value = RIGHT.records[7].value or b""
    average, low, high, count = value.split(b",")
    for other in (
        b"%.4f,%s,%s,%s" % (float(average) + 0.001, low, high, count),
        b",".join([average, b"1" + low, high, count]),
        b",".join([average, low, high, b"9"]),
    ):
        bad = changed(RIGHT, lambda r, v=other: r.__setitem__(7, replace(r[7], value=v)))  # type: ignore[misc]
        found = judged("q1", INPUT, bad)
        assert (found["exit"], found["counts"]["wrong"], found["counts"]["missing"]) == (4, 1, 0)
    key = str(int(start or b"0") - 1).encode()
    found = judged("q1", INPUT, changed(RIGHT, lambda r: r.append(replace(r[7], key=key))))
    assert (found["exit"], found["counts"]["extra"]) == (4, 1)
    for garbage in (b"garbage", None, b"1,2,3", b"1,2,3,nan"):
        bad = changed(RIGHT, lambda r, v=garbage: r.append(replace(r[7], value=v)))  # type: ignore[misc]
        assert judged("q1", INPUT, bad)["counts"]["extra"] == 1


def test_averages_are_compared_as_numbers(judged: Judged) -> None:
    def rounded(record: Record) -> Record:
        average, *rest = (record.value or b"").split(b",")
        return replace(record, value=b",".join([b"%.9e" % (float(average) + 0.0003), *rest]))

    found = judged("q1", INPUT, Topic("out", [rounded(r) for r in RIGHT.records]))
    assert found["correctness"] == "correct"


def test_of_several_updates_the_last_counts(judged: Judged) -> None:
    def early(record: Record, by_ms: int) -> Record:
        return replace(record, timestamp_ms=record.timestamp_ms - by_ms, value=b"9,9,9,1")

    updates = [u for r in RIGHT.records for u in (early(r, 900), early(r, 400), r)]
    found = judged("q1", INPUT, Topic("out", updates).renumbered())
    assert found["correctness"] == "correct"
    assert found["counts"]["surplus"] == 2 * LAST
    assert found["clock"]["ok"]
    swapped = changed(Topic("out", updates), lambda r: r.append(early(r[2], 0)))
    found = judged("q1", INPUT, swapped)
    assert (found["correctness"], found["counts"]["wrong"]) == ("incorrect", 1)


def test_outputs_without_a_key_are_aligned(judged: Judged) -> None:
    plain = answers(INPUT, keys=False)
    found = judged("q1", INPUT, plain)
    assert (found["correctness"], found["counts"]["matched"]) == ("correct", LAST)
    found = judged("q1", INPUT, changed(plain, lambda r: r.pop(9)))
    assert (found["correctness"], found["counts"]["missing"]) == ("incorrect", 1)
    assert found["counts"]["matched"] == LAST - 1
    found = judged(
        "q1", INPUT, changed(plain, lambda r: r.insert(9, replace(r[9], value=b"1,2,3,4")))
    )
    assert (found["correctness"], found["counts"]["extra"]) == ("incorrect", 1)
    found = judged("q1", INPUT, changed(plain, lambda r: r.pop()))
    assert found["correctness"] == "correct"


def test_missing_evidence(judged: Judged) -> None:
    assert judged("q1", INPUT, RIGHT.json_lines()[:-150])["correctness"] == "unknown"
    whole = INPUT.json_lines()
    assert judged("q1", whole[: len(whole) // 2], RIGHT)["correctness"] == "unknown"
    assert judged("q1", Topic("in", INPUT.records, CREATE), RIGHT)["correctness"] == "unknown"
    assert judged("q1", INPUT, b"")["correctness"] == "incorrect"
    assert judged("q1", b"", b"")["correctness"] == "unknown"
    impossible = changed(RIGHT, lambda r: r.__setitem__(0, replace(r[0], value=b"1,1,99999,99999")))
    assert judged("q1", INPUT, impossible.json_lines()[:-150])["correctness"] == "incorrect"


def test_a_window_without_input_gives_nothing(judged: Judged) -> None:
    gap = Topic(
        "in",
        [
            replace(r, timestamp_ms=r.timestamp_ms + (5_000 if n >= 1_000 else 0))
            for n, r in enumerate(INPUT.records)
        ],
    )
    sink = answers(gap)
    assert judged("q1", gap, sink)["correctness"] == "correct"
    key = str(int(sink.records[19].key or b"0") + 3_000).encode()
    extra = changed(sink, lambda r: r.append(replace(r[-1], key=key)))
    assert judged("q1", gap, extra)["counts"]["extra"] == 1


def test_without_a_key_an_early_answer_is_not_that_of_the_last_window(judged: Judged) -> None:
    def spoil(records: list[Record]) -> None:
        records.pop()
        records[-1] = replace(records[-1], value=b"1,2,3,4")

    found = judged("q1", INPUT, changed(answers(INPUT, keys=False), spoil))
    counts = found["counts"]
    assert (counts["wrong"], counts["missing"], counts["matched"]) == (1, 0, LAST - 1)


def test_windows_out_of_order_are_counted_and_not_wrong(judged: Judged) -> None:
    found = judged("q1", INPUT, changed(RIGHT, lambda r: r.insert(3, r.pop(8))))
    assert (found["correctness"], found["counts"]["out_of_order"]) == ("correct", 1)
    shown = [one for one in found["witnesses"] if one["kind"] == "out_of_order"]
    assert [one["offset"] for one in shown] == [3]


def test_without_a_key_a_clock_that_runs_backwards_changes_nothing(judged: Judged) -> None:
    plain = answers(INPUT, keys=False)
    stamps = [record.timestamp_ms for record in plain.records]
    stamps[5], stamps[9] = stamps[9], stamps[5]
    jumping = [replace(r, timestamp_ms=t) for r, t in zip(plain.records, stamps, strict=True)]
    for topic in (Topic("out", jumping), Topic("out", jumping, CREATE)):
        found = judged("q1", INPUT, topic)
        assert (found["correctness"], found["counts"]["matched"]) == ("correct", LAST)
        assert found["clock"]


def test_without_a_key_right_answers_out_of_order_are_right(judged: Judged) -> None:
    plain = answers(INPUT, keys=False)
    for begin, end in ((9, 10), (3, 14)):
        found = judged("q1", INPUT, changed(plain, lambda r, b=begin, e=end: r.insert(b, r.pop(e))))  # type: ignore[misc]
        counts = found["counts"]
        assert (found["correctness"], counts["matched"]) == ("correct", LAST), counts
        assert counts["out_of_order"] == 1
    # Two partitions, written in the same millisecond, in turn.
    pairs = [replace(r, partition=n % 2) for n, r in enumerate(plain.records)]
    for n in range(0, len(pairs) - 1, 2):
        pairs[n + 1] = replace(
            pairs[n + 1], timestamp_ms=pairs[n].timestamp_ms + 2_000, partition=0
        )
        pairs[n] = replace(pairs[n], timestamp_ms=pairs[n].timestamp_ms + 2_000, partition=1)
    found = judged("q1", INPUT, Topic("out", pairs).renumbered())
    assert (found["correctness"], found["counts"]["matched"]) == ("correct", LAST)


def test_without_a_key_a_lost_one_is_missing_though_others_are_out_of_order(
    judged: Judged,
) -> None:
    def spoil(records: list[Record]) -> None:
        records.insert(3, records.pop(4))
        records.pop(11)

    counts = judged("q1", INPUT, changed(answers(INPUT, keys=False), spoil))["counts"]
    assert (counts["missing"], counts["wrong"], counts["extra"]) == (1, 0, 0)
    assert (counts["matched"], counts["out_of_order"]) == (LAST - 1, 1)


def test_a_sink_that_begins_late_leaves_open_what_is_missing(judged: Judged) -> None:
    late = Topic("out", RIGHT.records[2:])
    found = judged("q1", INPUT, late)
    assert (found["correctness"], found["undecided"]) == ("unknown", {"missing": 2})
    assert any("begins after offset 0" in problem for problem in found["problems"])
