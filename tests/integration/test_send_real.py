"""`espbench send` into a real broker, read back record by record."""

import json
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from espbench import services as embedded
from espbench.config import Settings, load_settings
from espbench.kafka import client as kafka
from espbench.kafka.admin import KafkaAdmin
from espbench.services.endpoints import bootstrap_servers
from sender.testkit import sensor_row, sensor_rows


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "espbench", *arguments]


def espbench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, timeout=180
    )


@pytest.fixture
def run(services: Settings) -> Iterator[str]:
    assert services
    name = f"t{uuid.uuid4().hex[:8]}"
    yield name
    espbench("topics", "delete", "--run", name)


@pytest.fixture
def sensor_file(tmp_path: Path) -> Path:
    path = tmp_path / "sensor-1.csv"
    path.write_bytes(sensor_rows(700))
    return path


def read_topic(servers: str, topic: str) -> list[tuple[int, int, int, bytes | None, bytes]]:
    """(partition, offset, LogAppendTime, key, value) of everything in a topic."""
    library = kafka.library()
    ranges = KafkaAdmin(servers).offsets(topic)
    consumer = library.Consumer({"bootstrap.servers": servers, "group.id": "test"})
    consumer.assign([library.TopicPartition(topic, each.partition, each.begin) for each in ranges])
    wanted = sum(each.count for each in ranges)
    found: list[tuple[int, int, int, bytes | None, bytes]] = []
    deadline = time.monotonic() + 30
    while len(found) < wanted and time.monotonic() < deadline:
        for message in consumer.consume(1_000, timeout=1.0):
            kind, stamp_ms = message.timestamp()
            assert kind == library.TIMESTAMP_LOG_APPEND_TIME
            found.append(
                (message.partition(), message.offset(), stamp_ms, message.key(), message.value())
            )
    consumer.close()
    assert len(found) == wanted
    return sorted(found)


def test_what_arrives_is_what_was_scheduled(
    run: str, services: Settings, sensor_file: Path, tmp_path: Path
) -> None:
    assert espbench("topics", "create", "--run", run, "--queries", "q3").returncode == 0
    out = tmp_path / "new" / "sender.json"
    start_ms = time.time_ns() // 1_000_000 + 6_000
    sent = espbench(
        "send", "--run", run, "--stream", f"1={sensor_file}", "--rate", "500", "--duration", "3",
        "--start-ms", str(start_ms), "--out", str(out), "--json",
    )  # fmt: skip
    report = json.loads(sent.stdout)
    assert report == json.loads(out.read_text(encoding="utf-8"))
    assert sent.returncode == (0 if report["valid"] else 5), sent.stderr
    (row,) = report["streams"]
    assert report["start_ms"] == start_ms
    assert (row["handed"], row["acknowledged"], row["failed"]) == (1_500, 1_500, 0)
    assert row["partitions"] == [
        {"partition": 0, "count": 1_500, "first_offset": 0, "last_offset": 1_499}
    ]
    assert row["lateness_ms"]["appended"]["n"] == 1_500
    assert sum(row["per_second"]) == 1_500

    records = read_topic(bootstrap_servers(services), row["topic"])
    assert [value for *_, value in records] == [
        b"%d;%d;%b" % (i, start_ms + 2 * i, sensor_row(i % 700)) for i in range(1_500)
    ]
    assert {key for _, _, _, key, _ in records} == {None}
    assert all(stamp >= start_ms + 2 * i for i, (_, _, stamp, _, _) in enumerate(records))

    again = espbench("send", "--run", run, "--stream", f"1={sensor_file}", "--duration", "1")
    assert again.returncode == 2
    assert "was sent to before" in again.stderr


def test_two_streams_and_partitions(run: str, services: Settings, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.csv").write_bytes(sensor_rows(50, workplace=number))
    espbench("topics", "create", "--run", run, "--queries", "q4", "--partitions", "3")
    sent = espbench(
        "send", "--run", run, "--stream", f"1={tmp_path}/1.csv", "--stream", f"2={tmp_path}/2.csv",
        "--rate", "1000", "--rate", "2=100", "--duration", "1", "--json",
    )  # fmt: skip
    report = json.loads(sent.stdout)
    assert [row["acknowledged"] for row in report["streams"]] == [1_000, 100]
    for row in report["streams"]:
        records = read_topic(bootstrap_servers(services), row["topic"])
        by_partition: dict[int, list[int]] = {0: [], 1: [], 2: []}
        for partition, _, _, _, value in records:
            by_partition[partition].append(int(value.split(b";")[0]))
        total = row["acknowledged"]
        assert by_partition == {p: list(range(p, total, 3)) for p in range(3)}
        assert [each["count"] for each in row["partitions"]] == [
            len(ids) for ids in by_partition.values()
        ]


def test_production_times_end_with_their_file(run: str, services: Settings, tmp_path: Path) -> None:
    path = tmp_path / "production_times.csv"
    path.write_bytes(b"".join(b"%d\t1\t1\t%d\n" % (i // 2, i % 2) for i in range(40)))
    espbench("topics", "create", "--run", run, "--queries", "q5", "--partitions", "2")
    sent = espbench(
        "send", "--run", run, "--stream", f"3={path}", "--rate", "100", "--duration", "5", "--json"
    )
    (row,) = json.loads(sent.stdout)["streams"]
    assert (row["ended_early"], row["acknowledged"]) == (True, 40)
    records = read_topic(bootstrap_servers(services), row["topic"])
    ids = [(int(value.split(b";")[0]), partition) for partition, _, _, _, value in records]
    assert all(partition == number // 2 % 2 for number, partition in ids)


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"])
def test_both_clients_keep_the_contract(
    run: str, services: Settings, sensor_file: Path, client: str
) -> None:
    espbench("topics", "create", "--run", run, "--queries", "q3")
    sent = espbench(
        "send", "--run", run, "--stream", f"1={sensor_file}", "--rate", "200", "--duration", "2",
        "--client", client, "--json",
    )  # fmt: skip
    assert sent.stdout, sent.stderr
    (row,) = json.loads(sent.stdout)["streams"]
    assert (row["acknowledged"], row["appended"], row["failed"]) == (400, 400, 0)
    records = read_topic(bootstrap_servers(services), row["topic"])
    assert [int(value.split(b";")[0]) for *_, value in records] == list(range(400))


def test_a_missing_topic_and_a_start_in_the_past(run: str, sensor_file: Path) -> None:
    missing = espbench("send", "--run", run, "--stream", f"1={sensor_file}")
    assert missing.returncode == 2
    assert "there is no topic" in missing.stderr
    espbench("topics", "create", "--run", run, "--queries", "q3")
    late = espbench("send", "--run", run, "--stream", f"1={sensor_file}", "--start-ms", "1000")
    assert late.returncode == 2
    assert "ago" in late.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_keeps_the_report(
    run: str, services: Settings, sensor_file: Path, tmp_path: Path, number: signal.Signals
) -> None:
    espbench("topics", "create", "--run", run, "--queries", "q3")
    out = tmp_path / "sender.json"
    sending = subprocess.Popen(
        command(
            "send", "--run", run, "--stream", f"1={sensor_file}", "--rate", "1000",
            "--duration", "600", "--out", str(out),
        ),
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    topic = f"espbench-{run}-1"
    wait_for_records(bootstrap_servers(services), topic, 500)
    sending.send_signal(number)
    _, words = sending.communicate(timeout=60)
    assert sending.returncode == 130, words
    report = json.loads(out.read_text(encoding="utf-8"))
    (row,) = report["streams"]
    assert report["interrupted"]
    assert not report["valid"]
    assert row["failed"] == 0
    assert row["handed"] == row["acknowledged"] == row["appended"]
    ids = [
        int(value.split(b";")[0]) for *_, value in read_topic(bootstrap_servers(services), topic)
    ]
    assert ids == list(range(row["acknowledged"]))


class TestDyingBroker:
    """A broker of its own, so that the others' is left alone."""

    @pytest.fixture
    def own(self, state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        (tmp_path / "own").mkdir()
        (tmp_path / "own" / "jars").symlink_to(state_dir / "jars")
        monkeypatch.setenv("ESPBENCH_STATE_DIR", str(tmp_path / "own"))
        # The port is fixed, as a broker's is that comes back.
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        monkeypatch.setenv("ESPBENCH_KAFKA__PORT", str(port))
        settings = load_settings(None, {"state_dir": tmp_path / "own"})
        (broker,) = embedded.select(settings, ["kafka"])
        broker.start()
        yield settings, broker
        broker.stop()

    def sending(self, sensor_file: Path, out: Path, *more: str) -> "subprocess.Popen[str]":
        espbench("topics", "create", "--run", "r", "--queries", "q3")
        return subprocess.Popen(
            command(
                "send", "--run", "r", "--stream", f"1={sensor_file}", "--rate", "1000",
                "--out", str(out), *more,
            ),
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    @pytest.mark.parametrize("fault", ["killed", "full disk"])
    def test_a_dead_broker_is_a_clear_error_and_the_report_is_kept(
        self, own: Any, sensor_file: Path, tmp_path: Path, fault: str
    ) -> None:
        settings, broker = own
        out = tmp_path / "sender.json"
        sending = self.sending(sensor_file, out, "--duration", "600", "--delivery-timeout", "4")
        wait_for_records(bootstrap_servers(settings), "espbench-r-1", 500)
        process = broker.record().process()
        if fault == "killed":
            process.kill()
        else:  # no file of the broker may grow any more: its disk is full
            process.rlimit(psutil.RLIMIT_FSIZE, (1, 1))
        _, words = sending.communicate(timeout=90)
        assert sending.returncode == 3, words
        assert "did not take a record" in words.splitlines()[-1]
        report = json.loads(out.read_text(encoding="utf-8"))
        (row,) = report["streams"]
        assert report["interrupted"]
        assert not report["valid"]
        assert row["failed"] > 0
        assert row["brake"] == "broker"
        assert row["handed"] == row["acknowledged"] + row["failed"]
        assert row["acknowledged"] >= 500
        if fault == "killed":
            assert row["partitions"][0]["last_offset"] is None

    @pytest.mark.parametrize("idempotence", ["--idempotence", "--no-idempotence"])
    def test_a_broker_that_dies_for_five_seconds(
        self, own: Any, sensor_file: Path, tmp_path: Path, idempotence: str
    ) -> None:
        settings, broker = own
        out = tmp_path / "sender.json"
        sending = self.sending(sensor_file, out, "--duration", "25", idempotence)
        wait_for_records(bootstrap_servers(settings), "espbench-r-1", 3_000)
        broker.record().process().kill()
        time.sleep(5)
        broker.start()
        _, words = sending.communicate(timeout=120)
        assert sending.returncode == 5, words  # five seconds late: not a valid load
        report = json.loads(out.read_text(encoding="utf-8"))
        (row,) = report["streams"]
        assert (row["handed"], row["acknowledged"], row["failed"]) == (25_000, 25_000, 0)
        assert row["brake"] in {"broker", "machine"}
        ids = [
            int(value.split(b";")[0])
            for *_, value in read_topic(bootstrap_servers(settings), "espbench-r-1")
        ]
        if idempotence == "--idempotence":
            assert ids == list(range(25_000))
        assert sorted(set(ids)) == list(range(25_000))
        copies = len(ids) - 25_000
        assert row["appended"] == len(ids)
        if row["account"] is None:  # nothing was sent twice, and so nothing was counted anew
            assert copies == row["retried"] == 0
        else:
            assert row["account"] == {
                "present": 25_000,
                "missing": 0,
                "duplicated": copies,
                "first_missing": None,
            }


def test_a_deleted_topic_ends_the_send(
    run: str, services: Settings, sensor_file: Path, tmp_path: Path
) -> None:
    espbench("topics", "create", "--run", run, "--queries", "q3")
    out = tmp_path / "sender.json"
    sending = subprocess.Popen(
        command(
            "send", "--run", run, "--stream", f"1={sensor_file}", "--rate", "1000",
            "--duration", "600", "--out", str(out), "--delivery-timeout", "4",
        ),
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    wait_for_records(bootstrap_servers(services), f"espbench-{run}-1", 500)
    espbench("topics", "delete", "--run", run)
    _, words = sending.communicate(timeout=90)
    assert sending.returncode == 3, words
    assert "did not take a record" in words.splitlines()[-1]
    report = json.loads(out.read_text(encoding="utf-8"))
    (row,) = report["streams"]
    assert report["interrupted"]
    assert row["failed"] > 0
    assert (row["appended"], row["partitions"][0]["last_offset"]) == (None, None)
    assert row["handed"] == row["acknowledged"] + row["failed"]


def test_several_senders_share_the_partitions(
    run: str, services: Settings, sensor_file: Path, tmp_path: Path
) -> None:
    espbench("topics", "create", "--run", run, "--queries", "q3", "--partitions", "3")
    out = tmp_path / "sender.json"
    arguments = ("send", "--run", run, "--stream", f"1={sensor_file}", "--duration", "2")
    many = espbench(*arguments, "--senders", "4")
    assert many.returncode == 2
    assert "has 3 partitions" in many.stderr
    sent = espbench(
        *arguments, "--senders", "2", "--rate", "3000", "--no-read-in-ram", "--out", str(out),
        "--profile", "cosine:noise=100",
    )  # fmt: skip
    report = json.loads(out.read_text(encoding="utf-8"))
    assert sent.returncode == (0 if report["valid"] else 5), sent.stderr
    (row,) = report["streams"]
    total = row["scheduled"]
    assert report["senders"] == 2
    assert (row["handed"], row["acknowledged"], row["appended"]) == (total,) * 3
    assert sum(row["per_second"]) == row["lateness_ms"]["handed"]["n"] == total
    by_partition: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for partition, _, _, _, value in read_topic(bootstrap_servers(services), row["topic"]):
        by_partition[partition].append(int(value.split(b";")[0]))
    assert by_partition == {p: list(range(p, total, 3)) for p in range(3)}
    drawn = (tmp_path / "sender-schedule.csv").read_text(encoding="utf-8").splitlines()
    assert drawn[-1] == f"1,2000,{total}"


def test_a_full_disk_of_the_report_leaves_it_on_standard_output(
    run: str, services: Settings, sensor_file: Path, tmp_path: Path
) -> None:
    assert services
    espbench("topics", "create", "--run", run, "--queries", "q3")
    # The report is the only file of this process that is longer than its limit.
    sent = subprocess.run(
        [
            "prlimit", "--fsize=500",
            *command(
                "send", "--run", run, "--stream", f"1={sensor_file}", "--rate", "100",
                "--duration", "1", "--out", str(tmp_path / "sender.json"), "--json",
            ),
        ],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert sent.returncode == 3, sent.stderr
    assert "cannot write the sender's report" in sent.stderr
    assert json.loads(sent.stdout)["streams"][0]["acknowledged"] == 100
    assert not (tmp_path / "sender.json").exists()


def wait_for_records(servers: str, topic: str, count: int) -> None:
    admin = KafkaAdmin(servers)
    deadline = time.monotonic() + 60
    while sum(each.count for each in admin.offsets(topic)) < count:
        assert time.monotonic() < deadline, "the sender does not send"
        time.sleep(0.1)
