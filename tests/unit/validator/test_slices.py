"""Working by slices, and on what is read again, must not change what is found."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.names import find_query
from validator import parquetfile, slices
from validator.judge import judge
from validator.order import out_of_order
from validator.request import Request
from validator.synthetic import Plan, Topic, identity_sink, source
from validator.topics import TopicFile


def judged(tmp_path: Path, stream: Topic, sink: Topic) -> dict[str, Any]:
    request = Request(
        query=find_query("q0"),
        sources={1: TopicFile("source-1", stream.write_parquet(tmp_path / "in"))},
        sink=TopicFile("sink", sink.write_parquet(tmp_path / "out")),
    )
    document = judge(request).document()
    del document["validator_s"]
    return document


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("rows", [7, 50])
def test_small_slices_find_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, partitions: int
) -> None:
    plan = Plan(records=600, partitions=partitions)
    stream = source(plan)
    for place, spoilt in ((20, None), (30, b"garbage"), (31, b"garbage"), (32, b"\xff")):
        stream.records[place] = replace(stream.records[place], value=spoilt)
    records = list(identity_sink(stream, plan).records)
    altered = (records[40].value or b"").replace(b"0193", b"0194")
    records[40] = replace(records[40], value=altered)
    records.insert(310, records[100])
    del records[200:203]
    del records[30]
    records.append(replace(records[0], value=b"rubbish"))
    sink = Topic("out", records).renumbered()
    whole = judged(tmp_path, stream, sink)
    found = {name: whole["counts"][name] for name in ("matched", "missing", "wrong", "extra")}
    assert found == {"matched": 595, "missing": 4, "wrong": 1, "extra": 1}
    assert whole["counts"]["duplicate"] == 1
    monkeypatch.setattr(parquetfile, "BATCH_ROWS", rows)
    monkeypatch.setattr(slices, "SLICE", 100)
    assert judged(tmp_path, stream, sink) == whole


def test_witnesses_show_what_stands_in_the_files(tmp_path: Path) -> None:
    plan = Plan(records=60)
    stream = source(plan)
    records = list(identity_sink(stream, plan).records)
    lost = records.pop(7)
    found = judged(tmp_path, stream, Topic("out", records).renumbered())
    (witness,) = found["witnesses"]
    assert (witness["kind"], witness["offset"], witness["actual"]) == ("missing", 7, None)
    assert witness["expected"] == (lost.value or b"").decode()


def longest_rise(numbers: list[int]) -> int:
    best = [1] * len(numbers)
    for place, number in enumerate(numbers):
        for before in range(place):
            if numbers[before] < number:
                best[place] = max(best[place], best[before] + 1)
    return max(best, default=0)


@given(st.permutations(range(9)), st.integers(0, 3))
def test_the_fewest_are_out_of_order(shuffled: list[int], in_order: int) -> None:
    numbers = [*range(in_order), *(in_order + number for number in shuffled), 99]
    count = len(numbers)
    moved = out_of_order(np.zeros(count, dtype=int), np.arange(count), np.array(numbers))
    assert len(moved) == count - longest_rise(numbers)
    left = np.delete(np.array(numbers), moved)
    assert (np.diff(left) > 0).all()
