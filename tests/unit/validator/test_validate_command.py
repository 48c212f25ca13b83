import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from espbench.cli import main
from validator.synthetic import Plan, Topic, errors_sink, identity_sink, source, write_capture

PLAN = Plan()
INPUT = source(PLAN)
ERRORS = errors_sink(INPUT, PLAN)


Espbench = Callable[..., tuple[int, str, str]]
Document = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def espbench(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Espbench:
    """Run `espbench validate` in this process: exit code, standard output, standard error."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["espbench", "validate", *map(str, words)])
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capfd.readouterr()
        return int(left.value.code or 0), out, err

    return run


@pytest.fixture
def document(espbench: Espbench) -> Document:
    """Run with --json: exit code and document."""

    def run(*words: str | Path) -> tuple[int, dict[str, Any]]:
        code, out, err = espbench(*words, "--json")
        assert "Traceback" not in err
        return code, json.loads(out)

    return run


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    INPUT.write_json_lines(tmp_path / "in.jsonl")
    ERRORS.write_json_lines(tmp_path / "out.jsonl", zipped=True)
    return ["--source", f"1={tmp_path}/in.jsonl", "--sink", f"{tmp_path}/out.jsonl"]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    topics = {"source-1": INPUT, "sink": ERRORS}
    return write_capture(tmp_path / "capture", "identify-errors", topics, rate=50.0, duration=40.0)


def test_plain_files(document: Document, files: list[str]) -> None:
    for name in ("3", "q3", "identify-errors"):
        code, found = document("--query", name, *files)
        assert (code, found["correctness"]) == (0, "correct")
        assert found["load"]["valid"] is None
    code, found = document("--queries", "q3", *files, "--rate", "50", "--duration", "40")
    assert (code, found["load"]["valid"]) == (0, True)
    assert document("--query", "q3", *files, "--rate", "80")[0] == 5
    assert document("--query", "q3", *files, "--slo", "10")[0] == 6
    code, found = document("--query", "q3", *files, "--warmup", "0", "--guarantee", "exactly-once")
    assert found["latency_ms_after_warmup"]["n"] == 199


def test_the_configuration_tells_what_plain_files_cannot(
    document: Document, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESPBENCH_GUARANTEE", "exactly-once")
    monkeypatch.setenv("ESPBENCH_LOAD__WARMUP", "3")
    found = document("--query", "q3", *files)[1]
    assert (found["guarantee"], found["warmup_s"]) == ("exactly-once", 3)
    found = document("--query", "q3", *files, "--guarantee", "at-least-once", "--warmup", "0")[1]
    assert (found["guarantee"], found["warmup_s"]) == ("at-least-once", 0)


def test_a_capture(document: Document, capture: Path, tmp_path: Path) -> None:
    code, found = document(capture, "--out", tmp_path / "results")
    assert (code, found["correctness"], found["load"]["valid"]) == (0, "correct", True)
    stored = json.loads((tmp_path / "results/verdict-identify-errors.json").read_text())
    assert stored == found
    latencies = pq.read_table(tmp_path / "results/latencies-identify-errors.parquet")
    assert latencies.num_rows == 199
    assert set(latencies["latency_ms"].to_pylist()) == {20}
    assert set(latencies["end_to_end_ms"].to_pylist()) == {22}
    lag = pq.read_table(tmp_path / "results/lag-identify-errors.parquet")
    assert lag["owed"].to_pylist()[-1] == 199
    assert lag["lag"].to_pylist()[-1] == 0
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        "lag-identify-errors.parquet",
        "latencies-identify-errors.parquet",
        "verdict-identify-errors.json",
    ]


def test_a_table_for_people(espbench: Espbench, capture: Path) -> None:
    code, out, _ = espbench(capture)
    assert code == 0
    assert "correctness" in out
    assert "199 matched" in out


def test_several_captures(document: Document, capture: Path, tmp_path: Path) -> None:
    echo = {"source-1": INPUT, "sink": identity_sink(INPUT, PLAN)}
    write_capture(tmp_path / "captures" / "identity", "q0", echo)
    capture.rename(tmp_path / "captures" / "identify-errors")
    code, found = document(tmp_path / "captures")
    assert code == 0
    assert [entry["query"] for entry in found["queries"]] == ["identify-errors", "identity"]
    code, found = document(tmp_path / "captures", "--query", "identity")
    assert found["query"] == "identity"


def test_the_capture_speaks_and_options_beat_it(document: Document, tmp_path: Path) -> None:
    twice = Topic(ERRORS.name, [*ERRORS.records, ERRORS.records[0]]).renumbered()
    topics = {"source-1": INPUT, "sink": twice}
    directory = write_capture(tmp_path / "c", "q3", topics, guarantee="exactly-once")
    assert document(directory)[0] == 4
    assert document(directory, "--guarantee", "at-least-once")[0] == 0


def change(capture: Path, **changes: Any) -> None:
    found = json.loads((capture / "capture.json").read_text())
    (capture / "capture.json").write_text(json.dumps(found | changes))


def change_topic(capture: Path, place: int, **changes: Any) -> None:
    topics = json.loads((capture / "capture.json").read_text())["topics"]
    topics[place] |= changes
    change(capture, topics=topics)


def test_what_the_capture_says_of_its_topics(document: Document, capture: Path) -> None:
    change_topic(capture, 1, complete=False)
    assert document(capture)[0] == 5
    change_topic(capture, 1, complete=True, timestamp_type="CreateTime")
    code, found = document(capture)
    assert (code, found["latency_ms"]) == (0, None)
    end = [{"partition": 0, "begin": 0, "end": 500, "leader": 1}]
    change_topic(capture, 1, timestamp_type="LogAppendTime", partitions=end)
    assert document(capture)[0] == 0
    change_topic(capture, 1, complete=None)
    code, found = document(capture)
    assert code == 5
    assert "offsets 199 to 499 are missing" in found["problems"][0]


def test_a_damaged_capture_is_a_verdict(
    document: Document, espbench: Espbench, capture: Path
) -> None:
    sink = capture / f"{ERRORS.name}.parquet"
    whole = sink.read_bytes()
    sink.write_bytes(whole[:-100])
    code, found = document(capture)
    assert (code, found["correctness"]) == (5, "unknown")
    assert sink.name in found["problems"][0]
    sink.unlink()
    assert document(capture)[0] == 5
    sink.write_bytes(whole)
    change(capture, topics=[])
    code, found = document(capture)
    assert (code, found["correctness"]) == (5, "unknown")
    for text in ("{", "[]", '{"format": "x"}', '{"format": "espbench-capture/1", "query": 9}'):
        (capture / "capture.json").write_text(text)
        code, found = document(capture)
        assert (code, found["correctness"]) == (5, "unknown")
        assert espbench(capture)[0] == 5


def test_wrong_usage_is_one_line(
    espbench: Espbench, tmp_path: Path, files: list[str], capture: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for words in (
        [],
        ["--query", "q9", *files],
        ["--query", "q3"],
        ["--query", "q3", "--source", f"1={capture}/nothing", "--sink", files[-1]],
        ["--query", "q3", *files[:2]],
        ["--query", "q3", *files, "--guarantee", "perhaps"],
        ["--query", "q3", *files, "--rate", "-1"],
        ["--query", "q3", *files, "--rate", "fast"],
        ["--query", "q3", *files, "--warmup", "nan"],
        ["--query", "q3", "--source", files[1].replace("1=", "2="), "--sink", files[-1]],
        ["--query", "q3", *files[:2], *files],
        ["--query", "q0,q3", *files],
        ["--query", "q3", *files, "--table", "item=x.csv"],
        ["--query", "q4", *files],
        [tmp_path / "nowhere"],
        [tmp_path / "empty"],
        [capture, *files],
        ["--nonsense"],
    ):
        code, out, err = espbench(*words, "--json")
        assert (code, json.loads(out)["exit_code"]) == (2, 2), words
        assert len(err.strip().splitlines()) == 1, err


BASE_ONLY = """
import sys

class Blocker:
    blocked = {"confluent_kafka", "kafka", "pyspark", "psycopg", "sqlalchemy", "pandas", "sklearn"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.blocked:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocker())
from espbench.cli import main
main()
"""


def test_the_base_install_is_enough(capture: Path) -> None:
    command = [sys.executable, "-c", BASE_ONLY, "validate", str(capture)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
