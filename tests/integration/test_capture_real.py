"""`espbench capture` on a real broker, and what the validator makes of it."""

import json
import shutil
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from espbench.config import Settings
from espbench.kafka import client as kafka
from espbench.kafka.admin import KafkaAdmin
from espbench.names import find_query
from espbench.services.endpoints import bootstrap_servers
from validator.capture import CaptureOrder, capture, topic
from validator.synthetic import Plan, Topic, errors_sink, source

PLAN = Plan(records=3_000, partitions=2)
INPUT = source(PLAN)
ERRORS = errors_sink(INPUT, PLAN)


def espbench(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "espbench", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)


def produce(address: str, name: str, what: Topic, **settings: Any) -> Any:
    """Write the records of a made-up topic; the broker gives offsets and timestamps."""
    producer = kafka.library().Producer({"bootstrap.servers": address, **settings})
    if "transactional.id" in settings:
        producer.init_transactions(30)
        producer.begin_transaction()
    for record in what.records:
        producer.produce(name, record.value, record.key, partition=record.partition)
        producer.poll(0)
    producer.flush(30)
    return producer


@pytest.fixture
def address(services: Settings) -> str:
    return bootstrap_servers(services)


@pytest.fixture
def run(services: Settings) -> str:
    assert services
    name = f"c{uuid.uuid4().hex[:8]}"
    words = ["topics", "create", "--run", name, "--queries", "q3", "--partitions", "2"]
    made = espbench(*words)
    assert made.returncode == 0, made.stderr
    return name


def names(run: str) -> tuple[str, str]:
    return f"espbench-{run}-1", f"espbench-{run}-identify-errors"


def order(run: str) -> CaptureOrder:
    return CaptureOrder(
        query=find_query("q3"),
        run=run,
        prefix="espbench",
        guarantee="at-least-once",
        rate=None,
        duration=None,
        warmup=0.0,
        sender_report=None,
    )


def topics_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {entry["role"]: entry for entry in document["topics"]}


def captured(run: str, out: Path) -> dict[str, Any]:
    done = espbench("capture", "--run", run, "--query", "q3", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document == json.loads((out / "capture.json").read_text())
    return document


def verdict(directory: Path) -> tuple[int, dict[str, Any]]:
    # How fast the test itself was does not matter.
    done = espbench("validate", directory, "--warmup", "0", "--slo", "600000", "--json")
    return done.returncode, json.loads(done.stdout or "{}")


def test_what_was_written_is_captured_and_judged(run: str, address: str, tmp_path: Path) -> None:
    stream, sink = names(run)
    produce(address, stream, INPUT)
    produce(address, sink, ERRORS)
    document = captured(run, tmp_path / "whole")
    found = topics_of(document)
    assert found["source-1"]["records"] == 3_000
    assert all(entry["complete"] for entry in document["topics"])
    assert not any(entry["transactional"] for entry in document["topics"])
    assert {entry["timestamp_type"] for entry in document["topics"]} == {"LogAppendTime"}
    ends = [part["end"] for part in found["source-1"]["partitions"]]
    assert ends == [1_500, 1_500]
    table = pq.read_table(tmp_path / "whole" / found["source-1"]["file"])
    read = set(
        zip(*(table[name].to_pylist() for name in ("partition", "offset", "value")), strict=True)
    )
    assert read == {(r.partition, r.offset, r.value) for r in INPUT.records}
    code, judged = verdict(tmp_path / "whole")
    assert (code, judged["correctness"]) == (0, "correct"), judged
    assert judged["counts"]["matched"] == len(ERRORS.records)
    assert judged["latency_ms"]["n"] == len(ERRORS.records)
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_a_lost_answer_is_incorrect(run: str, address: str, tmp_path: Path) -> None:
    stream, sink = names(run)
    produce(address, stream, INPUT)
    produce(address, sink, Topic(sink, ERRORS.records[1:]))
    captured(run, tmp_path / "c")
    code, judged = verdict(tmp_path / "c")
    assert (code, judged["counts"]["missing"]) == (4, 1)


def test_an_empty_sink_is_complete(run: str, address: str, tmp_path: Path) -> None:
    produce(address, names(run)[0], INPUT)
    assert topics_of(captured(run, tmp_path / "c"))["sink"]["complete"]
    assert verdict(tmp_path / "c")[0] == 4


def test_transactions_leave_gaps_that_are_no_loss(run: str, address: str, tmp_path: Path) -> None:
    stream, sink = names(run)
    produce(address, stream, INPUT)
    half = len(ERRORS.records) // 2
    first, second = Topic(sink, ERRORS.records[:half]), Topic(sink, ERRORS.records[half:])
    settings = {"transactional.id": run}
    produce(address, sink, first, **settings).commit_transaction(30)
    produce(address, sink, second, **settings).abort_transaction(30)
    produce(address, sink, second, **settings).commit_transaction(30)
    entry = topics_of(captured(run, tmp_path / "c"))["sink"]
    assert (entry["complete"], entry["transactional"]) == (True, True)
    assert entry["records"] == len(ERRORS.records)
    code, judged = verdict(tmp_path / "c")
    assert (code, judged["counts"]["duplicate"]) == (0, 0)
    assert judged["latency_label"] == "append, not commit"


def test_an_open_transaction_is_not_waited_for_for_ever(
    run: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, sink = names(run)
    produce(address, stream, INPUT)
    producer = produce(address, sink, ERRORS, **{"transactional.id": run})
    monkeypatch.setattr(topic, "IDLE_S", 2.0)
    document = capture(KafkaAdmin(address), order(run), tmp_path / "c", lambda _done: None)
    producer.abort_transaction(30)
    assert not topics_of(document)["sink"]["complete"]
    assert topics_of(document)["source-1"]["complete"]
    assert verdict(tmp_path / "c")[0] == 5


def test_an_interrupted_capture_goes_on(
    run: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, sink = names(run)
    produce(address, stream, INPUT)
    produce(address, sink, ERRORS)
    monkeypatch.setattr(topic, "_BATCH", 300)
    monkeypatch.setattr(topic, "_ROW_GROUP", 300)
    begun: list[int] = []
    went_on: list[int] = []

    def interrupt(done: int) -> None:
        begun.append(done)
        if done >= 1_500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture(KafkaAdmin(address), order(run), tmp_path / "c", interrupt)
    left = [path.name for path in tmp_path.iterdir()]
    assert left == [".c.unfinished"]
    assert verdict(tmp_path / left[0])[0] == 2
    # What comes after the beginning is left out, also where the reading goes on later.
    produce(address, stream, INPUT)
    document = capture(KafkaAdmin(address), order(run), tmp_path / "c", went_on.append)
    assert went_on[0] > begun[-1] - 600
    assert topics_of(document)["source-1"]["records"] == 3_000
    assert all(entry["complete"] for entry in document["topics"])
    assert verdict(tmp_path / "c")[0] == 0
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == sorted(
        ["capture.json", f"{stream}.parquet", f"{sink}.parquet"]
    )


def test_deleted_records_are_noticed(run: str, address: str, tmp_path: Path) -> None:
    stream, sink = names(run)
    produce(address, stream, INPUT)
    produce(address, sink, ERRORS)
    library = kafka.library()
    admin = library.admin.AdminClient({"bootstrap.servers": address})
    gone = library.TopicPartition(sink, 0, 10)
    for future in admin.delete_records([gone]).values():
        future.result()
    done = espbench("capture", "--run", run, "--query", "q3", "--out", tmp_path / "c", "--json")
    assert done.returncode == 5
    entry = topics_of(json.loads(done.stdout))["sink"]
    assert (entry["complete"], entry["partitions"][0]["begin"]) == (False, 10)
    code, judged = verdict(tmp_path / "c")
    assert (code, judged["correctness"]) == (5, "unknown")


def test_failures_are_one_line_and_leave_nothing(run: str, tmp_path: Path) -> None:
    words = ["capture", "--run", run, "--query", "q3", "--out"]
    (tmp_path / "old").mkdir()
    assert espbench(*words, tmp_path / "old").returncode == 2
    other = espbench("capture", "--run", "nothing", "--query", "q3", "--out", tmp_path / "a")
    assert other.returncode == 2
    away = espbench(*words, tmp_path / "b", "--bootstrap-servers", "127.0.0.1:1")
    assert away.returncode == 3
    assert "Traceback" not in away.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


ODD_VALUES = (
    None,
    b"",
    b"\xff\xfe no UTF-8 \x80",
    b'a "quoted" \\ value with \x00 \x01 \x1f \x7f\r\n\ttwice',
    "7;8;Zwölf → 12 \U0001f40d".encode(),
    b"}{][,:",
    b"x" * 100_000,
)


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_what_the_real_kcat_writes(run: str, address: str, tmp_path: Path) -> None:
    """Whatever bytes a record holds: identity's answers are right, and one changed byte is not."""
    source_name, sink_name = names(run)
    records = list(INPUT.records)
    for row, odd in enumerate(ODD_VALUES):
        records[100 * row] = replace(records[100 * row], value=odd, key=odd and b'k\xff"')
    produce(address, source_name, Topic("in", records))
    changed = replace(records[-1], value=(records[-1].value or b"") + b"\t")
    produce(address, sink_name, Topic("out", [*records[:-1], changed]))

    def consumed(name: str) -> Path:
        path = tmp_path / f"{name}.jsonl"
        command = ["kcat", "-C", "-b", address, "-t", name, "-o", "beginning", "-e", "-J"]
        with path.open("wb") as file:
            subprocess.run(command, stdout=file, check=True, timeout=60)
        return path

    def judged(sink: Path) -> dict[str, Any]:
        source_file = consumed(source_name)
        words = ["--query", "q0", "--source", f"1={source_file}", "--sink", str(sink), "--json"]
        found: dict[str, Any] = json.loads(espbench("validate", *words).stdout)
        return found

    found = judged(consumed(source_name))
    assert found["correctness"] == "correct", found["problems"]
    assert found["counts"]["malformed"] == len(ODD_VALUES)
    assert found["counts"]["matched"] == found["latency_ms"]["n"] == len(records)
    found = judged(consumed(sink_name))
    assert (found["correctness"], found["problems"]) == ("incorrect", [])
    assert found["counts"]["matched"] == len(records) - 1
    assert found["clock"]["ok"]


def test_the_latency_is_that_of_the_clients(address: str) -> None:
    """However busy the machine is: no figure may differ from the stamps that the clients saw."""
    script = Path(__file__).parents[2] / "benchmarks" / "calibrate_latency.py"
    size = ["--records", "1500", "--rate", "500", "--warmup", "1"]
    done = subprocess.run(
        [sys.executable, str(script), *size, "--bootstrap-servers", address, "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["n"] > 900
    assert set(found["arithmetic_error"].values()) == {0.0}
    assert found["outside_log"] == 0
