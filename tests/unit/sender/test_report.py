"""The report's form is fixed: others read it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from espbench.errors import MachineError
from espbench.kafka.admin import OffsetRange
from sender.clients import Tally
from sender.files import open_stream_file
from sender.lateness import LatenessHistogram
from sender.profiles import Constant
from sender.replay import Ending, replay
from sender.report import Evidence, StreamEvidence, make_report, write_report
from sender.schedule import Schedule
from sender.stream import StreamReplay
from sender.testkit import START_MS, FakeClient, FakeClock, sensor_rows
from sender.verdict import Effort


@pytest.fixture
def stream(tmp_path: Path) -> StreamReplay:
    path = tmp_path / "sensor-1.csv"
    path.write_bytes(sensor_rows(7))
    stream = StreamReplay(
        file=open_stream_file(path, 1),
        topic="t-1",
        partitions=2,
        schedule=Schedule(Constant(100), 1.5),
        start_ms=START_MS,
    )
    clock = FakeClock()
    replay(
        [stream],
        FakeClient(clock),
        clock,
        start_ns=START_MS * 1_000_000,
        tick_ns=1_000_000,
        give_up_ns=10**10,
        stop=lambda: False,
        progress=lambda _done: None,
    )
    return stream


def report_of(stream: StreamReplay, ending: Ending | None = None, **changes: Any) -> dict[str, Any]:
    appended = LatenessHistogram()
    appended.add(np.array([1_000_000, 2_000_000]))
    evidence = {
        "tally": Tally({0: 75, 1: 75}, {}, 0),
        "before": [OffsetRange(0, 0, 0), OffsetRange(1, 0, 0)],
        "after": [OffsetRange(0, 0, 75), OffsetRange(1, 0, 75)],
        "appended": appended,
        **changes,
    }
    return make_report(
        Evidence(
            run="r",
            start_ms=START_MS,
            client="confluent-kafka",
            settings={"acks": "all"},
            streams=[StreamEvidence(stream, **evidence)],
            ending=ending or Ending(),
            cpu_s=0.5,
            effort=Effort(loop=0.25),
            limit_ms=200.0,
        )
    )


def test_a_good_send(stream: StreamReplay) -> None:
    report = report_of(stream)
    (row,) = report.pop("streams")
    assert report == {
        "format": "espbench-sender/1",
        "run": "r",
        "start_ms": START_MS,
        "end_ms": START_MS + 1_490,
        "client": "confluent-kafka",
        "settings": {"acks": "all"},
        "senders": 1,
        "cpu_s": 0.5,
        "cpu_share": {"loop": 0.25, "client": 0.0, "busy": None, "stolen": None},
        "interrupted": False,
        "valid": True,
        "reasons": [],
    }
    assert row.pop("file").endswith("sensor-1.csv")
    assert row == {
        "stream": 1,
        "topic": "t-1",
        "profile": "constant",
        "asked_rate": 100.0,
        "duration_s": 1.5,
        "scheduled": 150,
        "handed": 150,
        "acknowledged": 150,
        "failed": 0,
        "retried": 0,
        "appended": 150,
        "account": None,
        "queue_full_stalls": 0,
        "ended_early": False,
        "achieved_rate": 100.0,
        "asked_per_second": [100, 50],
        "per_second": [100, 50],
        "lateness_ms": {
            "handed": {"p50": 0.0, "p90": 0.0, "p99": 0.0, "max": 0.0, "n": 150},
            "appended": {"p50": 1.0, "p90": 2.0, "p99": 2.0, "max": 2.0, "n": 2},
        },
        "brake": None,
        "partitions": [
            {"partition": 0, "count": 75, "first_offset": 0, "last_offset": 74},
            {"partition": 1, "count": 75, "first_offset": 0, "last_offset": 74},
        ],
    }


def test_a_dead_broker_leaves_offsets_unknown_and_counts_known(stream: StreamReplay) -> None:
    report = report_of(
        stream,
        Ending(failure="timed out"),
        tally=Tally({0: 75, 1: 75}, Counter({1: 5}), None),
        after=None,
        appended=None,
    )
    (row,) = report["streams"]
    assert report["valid"] is False
    assert report["interrupted"] is True
    assert any("timed out" in reason for reason in report["reasons"])
    assert (row["acknowledged"], row["failed"], row["appended"]) == (145, 5, None)
    assert row["partitions"][1] == {
        "partition": 1,
        "count": 70,
        "first_offset": None,
        "last_offset": None,
    }
    assert row["lateness_ms"]["appended"] is None


def test_an_interrupted_send_is_marked(stream: StreamReplay) -> None:
    report = report_of(stream, Ending(interrupted=True))
    assert report["interrupted"] is True
    assert report["valid"] is False
    assert "interrupted" in report["reasons"]


def test_an_empty_partition_has_no_offsets(stream: StreamReplay) -> None:
    report = report_of(stream, after=[OffsetRange(0, 0, 75), OffsetRange(1, 0, 0)])
    assert report["streams"][0]["partitions"][1]["last_offset"] is None
    assert report["valid"] is False


def test_the_report_is_json_and_written_whole(stream: StreamReplay, tmp_path: Path) -> None:
    out = tmp_path / "out" / "sender.json"
    out.parent.mkdir()
    report = report_of(stream)
    write_report(out, report)
    assert json.loads(out.read_text(encoding="utf-8")) == report
    assert [path.name for path in out.parent.iterdir()] == ["sender.json"]


def test_a_report_that_cannot_be_written_is_a_clear_error(
    stream: StreamReplay, tmp_path: Path
) -> None:
    with pytest.raises(MachineError, match="cannot write the sender's report"):
        write_report(tmp_path / "missing" / "sender.json", report_of(stream))
