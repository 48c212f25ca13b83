from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from validator.oracles import determine_outliers
from validator.oracles.sos import probabilities
from validator.synthetic import Plan, Record, Topic, sensor_line, source, well_formed

Judged = Callable[..., dict[str, Any]]


def stream(partitions: int = 1) -> Topic:
    """Smooth signals with a few excursions, and a malformed record."""
    random = Random(7)  # noqa: S311 - reproducible
    topic = source(Plan(records=1_240, partitions=partitions))
    mf01, mf02 = 13_400.0, 14_400.0
    records = []
    for number, record in enumerate(topic.records):
        mf01, mf02 = mf01 + random.gauss(0, 3), mf02 + random.gauss(0, 3)
        far = 3_000 if random.random() < 0.03 else 0
        line = sensor_line(number, round(mf01) + far, round(mf02), 8_500)
        due = (record.value or b"").split(b";")[1].decode()
        records.append(replace(record, value=f"{number};{due};{line}".encode()))
    records[100] = replace(records[100], value=b"malformed")
    return Topic(topic.name, records)


def answers(topic: Topic) -> Topic:
    sink = Topic("espbench-test-determine-outliers")
    partitions: dict[int, list[tuple[Record, str, str]]] = {}
    for item in well_formed(topic):
        partitions.setdefault(item[0].partition, []).append(item)
    for items in partitions.values():
        for begin in range(0, len(items) // 500 * 500, 500):
            window = items[begin : begin + 500]
            points = [[float(c) for c in line.split("\t")[2:4]] for _, _, line in window]
            found = probabilities(np.array(points), newton=False)
            for (_, number, line), probability in zip(window, found, strict=True):
                if probability >= 0.5:
                    value = f"{number};{line},{probability:.2f}".encode()
                    sink.add(window[-1][0].timestamp_ms + 40, value)
    return sink


INPUT = stream()
RIGHT = answers(INPUT)


def changed(change: Callable[[list[Record]], object]) -> Topic:
    records = list(RIGHT.records)
    change(records)
    return Topic(RIGHT.name, records).renumbered()


def test_right_outliers(judged: Judged) -> None:
    assert len(RIGHT.records) > 20
    found = judged("q2", INPUT, RIGHT)
    assert (found["correctness"], found["exit"]) == ("correct", 0), found["witnesses"]
    counts = found["counts"]
    assert counts["matched"] + counts["borderline"] == len(RIGHT.records)
    assert counts["malformed"] == 1
    assert found["latency_ms"]["max"] == found["latency_ms"]["min"] == 40


def test_windows_are_those_of_a_partition(judged: Judged) -> None:
    several = stream(partitions=2)
    assert judged("q2", several, answers(several))["correctness"] == "correct"
    assert judged("q2", several, RIGHT)["correctness"] == "incorrect"


def test_lost_altered_and_unasked_outliers(judged: Judged) -> None:
    found = judged("q2", INPUT, changed(lambda r: r.pop(3)))
    assert (found["exit"], found["counts"]["missing"]) == (4, 1)
    text, _, probability = (RIGHT.records[3].value or b"").rpartition(b",")
    other = b"0.%02d" % ((int(float(probability) * 100) + 7) % 100)
    for value in (text + b"," + other, text.replace(b"0193", b"0194") + b"," + probability):
        bad = changed(lambda r, v=value: r.__setitem__(3, replace(r[3], value=v)))  # type: ignore[misc]
        found = judged("q2", INPUT, bad)
        assert (found["exit"], found["counts"]["wrong"], found["counts"]["missing"]) == (4, 1, 0)
    for garbage in (
        text,
        b"garbage",
        None,
        text + b",much",
        b"9999;" + text.split(b";", 1)[1] + b",0.90",
    ):
        bad = changed(lambda r, v=garbage: r.append(replace(r[3], value=v)))  # type: ignore[misc]
        found = judged("q2", INPUT, bad)
        assert (found["exit"], found["counts"]["extra"]) == (4, 1), garbage


def test_the_probability_may_be_rounded_either_way(judged: Judged) -> None:
    def nudged(record: Record) -> Record:
        text, _, probability = (record.value or b"").rpartition(b",")
        return replace(record, value=text + b",%.6f" % float(probability))

    found = judged("q2", INPUT, Topic("out", [nudged(r) for r in RIGHT.records]))
    assert found["correctness"] == "correct"


def test_a_lost_input_may_change_everything(judged: Judged) -> None:
    torn = INPUT.json_lines()[:-100]
    assert judged("q2", torn, RIGHT)["correctness"] == "unknown"
    assert judged("q2", torn, changed(lambda r: r.pop(3)))["correctness"] == "unknown"
    assert judged("q2", INPUT, RIGHT.json_lines()[:-100])["correctness"] == "unknown"


def test_the_borderline_may_be_there_or_not(
    judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = RIGHT.records[3].value or b""
    number = int(value.split(b";")[0])
    real = determine_outliers._each

    def at_the_border(points: Any) -> Any:
        found = real(points)
        found.reshape(-1)[number - (number > 100)] = 0.50005
        return found

    monkeypatch.setattr(determine_outliers, "_each", at_the_border)
    half = value.rpartition(b",")[0] + b",0.50"
    for sink in (
        changed(lambda r: r.pop(3)),
        changed(lambda r: r.__setitem__(3, replace(r[3], value=half))),
    ):
        found = judged("q2", INPUT, sink)
        assert (found["correctness"], found["counts"]["borderline"]) == ("correct", 1)


def test_a_pool_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(1).normal(0, 100, (6, 500, 2)).round()
    alone = determine_outliers.outlier_probabilities(points)
    monkeypatch.setattr(determine_outliers, "POOL_WINDOWS", 1)
    assert np.array_equal(determine_outliers.outlier_probabilities(points), alone)
