"""Reading an echo cheaply must not change what is found."""

from dataclasses import replace
from pathlib import Path

import pytest

from espbench.names import find_query
from validator import parquetfile
from validator.judge import judge
from validator.request import Request
from validator.synthetic import Plan, Topic, identity_sink, source
from validator.topics import TopicFile


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("rows", [7, 50, 10_000])
def test_an_echo_with_flaws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, partitions: int
) -> None:
    monkeypatch.setattr(parquetfile, "BATCH_ROWS", rows)
    plan = Plan(records=600, partitions=partitions)
    stream = source(plan)
    records = list(identity_sink(stream, plan).records)
    altered = (records[40].value or b"").replace(b"0193", b"0194")
    records[40] = replace(records[40], value=altered)
    records.insert(310, records[100])
    del records[200:203]
    records.append(replace(records[0], value=b"garbage"))
    sink = Topic("out", records).renumbered()
    request = Request(
        query=find_query("q0"),
        sources={1: TopicFile("source-1", stream.write_parquet(tmp_path / "in"))},
        sink=TopicFile("sink", sink.write_parquet(tmp_path / "out")),
    )
    counts = judge(request).counts
    found = {name: counts[name] for name in ("matched", "missing", "wrong", "duplicate", "extra")}
    assert found == {"matched": 596, "missing": 3, "wrong": 1, "duplicate": 1, "extra": 1}
