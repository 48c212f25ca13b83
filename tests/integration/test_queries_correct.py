"""Every query on a real Spark, judged by the validator: many partitions, every mode, a kill."""

import json
import os
import re
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from espbench.config import Settings
from espbench.kafka import client as kafka
from espbench.names import find_query
from espbench.services.endpoints import bootstrap_servers

DEADLINE_S = 240.0
FILES = {1: "sensor-1.csv", 2: "sensor-2.csv", 3: "production_times.csv"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "espbench", *arguments]


def espbench(*arguments: str) -> str:
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert done.returncode in {0, 4, 5, 6}, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Trial:
    """One query over topics of its own."""

    query: str
    data: Path
    place: Path
    run: str

    def prepare(self, partitions: int, duration_s: float) -> None:
        espbench(
            "topics", "create", "--run", self.run, "--queries", self.query,
            "--partitions", str(partitions),
        )  # fmt: skip
        self.reset(0, duration_s)

    def reset(self, ahead_s: float, duration_s: float) -> list[str]:
        """Place the downtimes; the sender's option that starts it when announced."""
        start_ms = str(int((time.time() + ahead_s) * 1_000))
        espbench("load", "--reset", "--start-ms", start_ms, "--duration", f"{duration_s:g}")
        return ["--start-ms", start_ms]

    def start(self, engine: str) -> "subprocess.Popen[str]":
        ready = self.place / "ready.json"
        ready.unlink(missing_ok=True)
        child = subprocess.Popen(
            command(
                "query", self.query, "--run", self.run, "--engine", engine,
                "--until", str(self.place / "sent.json"), "--out", str(self.place / "query.json"),
                "--ready-file", str(ready),
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PATH": f"{self.foreign_python()}{os.pathsep}{os.environ['PATH']}"},
        )  # fmt: skip
        deadline = time.monotonic() + DEADLINE_S
        while not ready.exists():
            assert child.poll() is None, child.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return child

    def foreign_python(self) -> Path:
        """A directory with a `python3` that has none of our packages, as many a PATH has."""
        directory = self.place / "bin"
        directory.mkdir(exist_ok=True)
        program = directory / "python3"
        program.write_text("#!/bin/sh\necho this is no Python of ours >&2\nexit 1\n")
        program.chmod(0o755)
        return directory

    def kill(self, part: str) -> None:
        ready = json.loads((self.place / "ready.json").read_text(encoding="utf-8"))
        driver = psutil.Process(ready["driver_pid"])
        victims = [driver]
        if part == "workers":
            # Forked by the daemon that the driver started.
            victims = [worker for daemon in driver.children() for worker in daemon.children()]
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.kill()

    def send(self, rate: int, duration_s: float, start: list[str]) -> list[str]:
        streams = [
            f"--stream={number}={self.data / FILES[number]}"
            for number in find_query(self.query).streams
        ]
        return command(
            "send", "--run", self.run, *streams, "--rate", str(rate), "--duration",
            f"{duration_s:g}", *start, "--out", str(self.place / "sent.json"),
        )  # fmt: skip

    def verdict(self) -> dict[str, Any]:
        capture = self.place / "capture"
        sent = self.place / "sent.json"
        report = ["--sender-report", str(sent)] if sent.exists() else []
        espbench(
            "capture", "--run", self.run, "--query", self.query, "--out", str(capture), *report
        )
        espbench("topics", "delete", "--run", self.run)
        found: dict[str, Any] = json.loads(espbench("validate", str(capture), "--json"))
        return found


@pytest.fixture(scope="module")
def data(services: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of scale 1, loaded."""
    assert services
    directory = tmp_path_factory.mktemp("data") / "set"
    espbench("datagen", "--scale", "1", "--sensor-rows", "60011", "--out", str(directory))
    espbench("load", "--data", str(directory), "--overwrite")
    return directory


@pytest.mark.parametrize(
    ("query", "engine", "partitions"),
    [
        ("q1", "micro-batch", 3),
        ("q1", "real-time", 2),
        ("q2", "micro-batch", 3),
        ("q2", "real-time", 3),
        ("q4", "micro-batch", 3),
        ("q4", "real-time", 1),
        ("q5", "micro-batch", 3),
        ("q5", "real-time", 2),
    ],
)
def test_a_query_is_right(
    query: str, engine: str, partitions: int, data: Path, tmp_path: Path
) -> None:
    trial = Trial(query, data, tmp_path, f"t{uuid.uuid4().hex[:8]}")
    duration_s = 10.0
    trial.prepare(partitions, duration_s)
    child = trial.start(engine)
    # The new downtimes must have been seen before the first record: freshness, and some more.
    start = trial.reset(14, duration_s) if query == "q4" else []
    sent = subprocess.run(
        trial.send(1_000, duration_s, start),
        check=False,
        capture_output=True,
        timeout=DEADLINE_S,
    )
    assert sent.returncode in {0, 5}, sent.stderr
    _, said = child.communicate(timeout=DEADLINE_S)
    assert child.returncode == 0, said
    verdict = trial.verdict()
    assert verdict["correctness"] == "correct", verdict["witnesses"][:3]
    assert verdict["counts"]["matched"] == verdict["counts"]["expected"] > 0
    assert verdict["counts"]["duplicate"] == 0


@pytest.mark.parametrize(
    ("query", "engine", "part"),
    [
        ("q2", "micro-batch", "driver"),
        ("q2", "real-time", "driver"),
        ("q5", "real-time", "workers"),
    ],
)
def test_a_killed_query_goes_on_and_stays_right(
    query: str, engine: str, part: str, data: Path, tmp_path: Path
) -> None:
    trial = Trial(query, data, tmp_path, f"t{uuid.uuid4().hex[:8]}")
    duration_s = 15.0
    trial.prepare(2, duration_s)
    first = trial.start(engine)
    sender = subprocess.Popen(
        trial.send(600, duration_s, []), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    progress = tmp_path / "query-progress.jsonl"
    deadline = time.monotonic() + DEADLINE_S
    # In the midst of it: the first records are answered for, others are still coming.
    while not re.search(r'"numInputRows":[1-9]', progress.read_text(encoding="utf-8")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert sender.poll() is None
    while first.poll() is None:
        assert time.monotonic() < deadline
        # Workers between two intervals are not missed, others take their place.
        with suppress(psutil.NoSuchProcess):
            trial.kill(part)
        time.sleep(0.2)
    _, said = first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 3, said
    sender.communicate(timeout=DEADLINE_S)
    again = trial.start(engine)
    _, said = again.communicate(timeout=DEADLINE_S)
    assert again.returncode == 0, said
    verdict = trial.verdict()
    assert verdict["correctness"] == "correct", verdict["witnesses"][:3]
    assert verdict["counts"]["matched"] == verdict["counts"]["expected"] > 0


def test_records_that_wait_for_company_are_answered_before_a_query_is_stopped(
    data: Path, services: Settings, tmp_path: Path
) -> None:
    trial = Trial("q5", data, tmp_path, f"t{uuid.uuid4().hex[:8]}")
    trial.prepare(1, 10.0)
    child = trial.start("real-time")
    with (data / FILES[3]).open(encoding="utf-8") as file:
        lines = [next(file).rstrip("\n") for _ in range(5)]
    producer = kafka.library().Producer({"bootstrap.servers": bootstrap_servers(services)})
    for number, line in enumerate(lines):
        producer.produce(f"espbench-{trial.run}-3", f"{number};1;{line}".encode(), partition=0)
    assert producer.flush(30) == 0
    child.terminate()
    _, said = child.communicate(timeout=DEADLINE_S)
    assert child.returncode == 130, said
    counts = trial.verdict()["counts"]
    assert counts["matched"] == counts["expected"] == len(lines)


def poison(number: int, line: str) -> bytes | None:
    """A record that is malformed, or looks so, or is worse: one kind after the other."""
    head, cells = f"{number};1", line.split("\t")
    last = len(cells) - 1

    def changed(place: int, text: str) -> bytes:
        return f"{head};{chr(9).join([*cells[:place], text, *cells[place + 1 :]])}".encode()

    kinds: list[bytes | None] = [
        None,
        b"",
        b";;",
        f"{head};".encode(),
        f"x;1;{line}".encode(),
        f"-{number};1;{line}".encode(),
        f"{number};;{line}".encode(),
        f"{head};{line}\t0".encode(),
        f"{head};{line.rpartition(chr(9))[0]}".encode(),
        f"{head};{line}".encode() + b"\xff",
        b"\xef\xbb\xbf" + f"{head};{line}".encode(),
        changed(last, f"{cells[last]}\n"),
        changed(last, ""),
        changed(last, "2x"),
        changed(2, "1.0"),
        changed(2, "+1"),
        changed(2, "\uff11"),
        changed(2, "9" * 19),
        # These are well-formed.
        *[changed(2, "9" * 18)] * 9,
        *[changed(2, "-" + "9" * 18)] * 3,
        changed(2, "007"),
        changed(2, str(2**31)),
        changed(2, str(2**32 + 1)),
        changed(0, str(-(2**31))),
    ]
    return kinds[number // 4 % len(kinds)]


@pytest.mark.parametrize(
    ("query", "engine"),
    [
        ("q1", "real-time"),
        ("q2", "available-now"),
        ("q2", "real-time"),
        ("q5", "available-now"),
        ("q5", "real-time"),
    ],
)
def test_poison_means_the_same_to_query_and_validator(
    query: str, engine: str, data: Path, services: Settings, tmp_path: Path
) -> None:
    trial = Trial(query, data, tmp_path, f"t{uuid.uuid4().hex[:8]}")
    trial.prepare(1, 10.0)
    (stream,) = find_query(query).streams
    with (data / FILES[stream]).open(encoding="utf-8") as file:
        lines = [next(file).rstrip("\n") for _ in range(1_600)]
    producer = kafka.library().Producer({"bootstrap.servers": bootstrap_servers(services)})
    for number, line in enumerate(lines):
        good = f"{number};1;{line}".encode()
        value = poison(number, line) if number % 4 == 3 else good
        producer.produce(f"espbench-{trial.run}-{stream}", value, partition=0)
        if number % 800 == 799:
            assert producer.flush(30) == 0
            # Query 1 has at least one window that is judged.
            time.sleep(1.1)
    out = tmp_path / "query.json"
    ends = [] if engine == "available-now" else ["--until-idle", "2"]
    espbench(
        "query", query, "--run", trial.run, "--engine", engine, "--out", str(out), *ends,
        "--rehearsal", "0",
    )  # fmt: skip
    report = json.loads(out.read_text(encoding="utf-8"))
    verdict = trial.verdict()
    assert verdict["correctness"] == "correct", verdict["witnesses"][:3]
    assert verdict["counts"]["matched"] == verdict["counts"]["expected"] > 0
    assert report["malformed"] == verdict["counts"]["malformed"] > 0
    places = Path(report["malformed_file"]).read_text(encoding="utf-8").splitlines()
    assert len({json.loads(place)["offset"] for place in places}) == report["malformed"]
