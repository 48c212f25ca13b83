"""The live view: what it reads from a growing run, shows, serves, and leaves alone."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pytest
from typer.testing import CliRunner

from espbench.cli import app
from espbench.errors import ServiceError
from espbench.live.files import RunFiles
from espbench.live.history import MOST_POINTS, Series
from espbench.live.look import Looker
from espbench.live.samples import Input, due_ms, input_of, window_end_ms
from espbench.live.serve import Board, served
from espbench.live.terminal import plain
from espbench.monitor.store import SampleWriter
from espbench.names import QUERIES, find_query
from espbench.services.process import ProcessRecord
from tests.unit.live.conftest import RUN, START_MS, FakeTail, Growing

Q3 = find_query("q3")


@pytest.mark.parametrize(
    ("query", "value", "partitions", "expected"),
    [
        ("q0", b"7;1700000000000;a\tb\t1", 3, Input(1, 1, 2)),
        ("q3", b"0;a\tb\t1", 1, Input(1, 0, 0)),
        ("q4", b"12;a\tb\t2", 1, Input(2, 0, 12)),
        ("q4", b"12;a\tb\t7", 1, None),
        ("q2", b"999;a\tb\t1,0.71", 1, Input(1, 0, 999)),
        ("q2", b"1000;a\tb\t1,0.71", 1, Input(1, 0, 1499)),
        ("q3", b"-1;x", 1, None),
        ("q3", b"", 1, None),
        ("q3", b"9" * 30, 1, None),
    ],
)
def test_an_answer_leads_to_its_input(
    query: str, value: bytes, partitions: int, expected: Input | None
) -> None:
    assert input_of(find_query(query), value, partitions) == expected


def test_windows_and_due_times() -> None:
    assert window_end_ms(b"1700000000000") == 1_700_000_001_000
    assert window_end_ms(None) is None
    assert window_end_ms(b"x") is None
    assert due_ms(b"0;1700000000000;a\tb") == 1_700_000_000_000
    assert due_ms(b"0;soon;a") is None
    assert due_ms(b"") is None


def test_step_numbers_and_latency_grow_with_the_run(growing: Growing) -> None:
    tails: list[FakeTail] = []

    def door(*words: Any) -> Any:
        assert words[0] == "127.0.0.1:1"
        assert words[3] == f"{RUN}-q3"
        tails.append(FakeTail())
        return tails[-1]

    looker = Looker(RunFiles(growing.run.root), door)
    looker.look()
    seen = looker.document()
    assert (seen["query"], seen["step"], seen["records"]) == (None, None, None)
    growing.begin("identify-errors", "topics")
    growing.end(Q3, "topics")
    growing.begin("identify-errors", "send")
    growing.batch("identify-errors", 400, torn='{"numInputRows"')
    for _ in range(12):
        looker.look()
    seen = looker.document()
    assert seen["step"]["name"] == "send"
    assert seen["step"]["query"] == "identify-errors"
    assert seen["records"] == {
        "sent": 12_000,
        "answered_at_least": 11_960,
        "lag_at_most": 40,
        "answers": 24,
    }
    assert seen["rate_per_s"] == {"asked": 1000.0, "stream_1_sent": 1000.0, "answers": 2.0}
    assert seen["latency_ms"] == {"n": 24, "p50": 206.0, "p90": 300.0, "max": 300.0}
    charts = seen["charts"]
    assert charts["lag"]["x"] == [0.0, 12.0]
    assert charts["lag"]["series"][0]["y"][-1] == 40
    assert charts["batches"]["series"][0]["y"] == [250.0]
    assert "sent 1,000/s" in plain(seen)
    assert "p90 300 ms" in plain(seen)
    # The next query begins anew.
    growing.begin("check-sensor-status", "topics")
    later = growing.run.root / "logs" / "check-sensor-status-topics.log"
    later.touch()
    growing.finish()
    looker.look()
    assert tails[0].closed
    assert looker.document()["over"]
    json.dumps(looker.document(), allow_nan=False)


def test_components_come_from_the_monitors_draft(growing: Growing) -> None:
    growing.begin("identify-errors", "send")
    row = {"time_ms": int(START_MS), "host": "h", "component": "kafka", "query": "identify-errors"}
    path = growing.run.root / "system-identify-errors.parquet"
    looker = Looker(RunFiles(growing.run.root), None)
    with SampleWriter(path) as writer:
        writer.add([row | {"cpu_percent": 12.5, "rss_bytes": 10**8}] * 60)
        looker.look()
        shown = looker.document()["components"]
    assert shown == [{"name": "kafka", "cpu_percent": 12.5, "rss_bytes": 10**8}]
    looker.look()
    assert looker.document()["components"] == shown


def test_a_broker_that_does_not_answer_is_a_note(growing: Growing) -> None:
    def door(*_: Any) -> Any:
        raise ServiceError("Kafka at 127.0.0.1:1 does not answer", "start it")

    growing.begin("identify-errors", "send")
    looker = Looker(RunFiles(growing.run.root), door)
    looker.look()
    assert looker.document()["notes"] == ["Kafka at 127.0.0.1:1 does not answer"]


def test_a_run_whose_process_is_gone_is_noticed(growing: Growing) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ProcessRecord.of(child.pid).write(growing.run.root / "run.pid")
    files = RunFiles(growing.run.root)
    files.refresh()
    child.communicate()
    assert not psutil.pid_exists(child.pid)
    with pytest.raises(ServiceError, match="ended without a word") as caught:
        files.refresh()
    assert f"--resume {RUN}" in caught.value.line()


def test_a_garbled_run_is_shown_as_far_as_it_goes(growing: Growing) -> None:
    growing.begin("identify-errors", "send")
    path = growing.run.root / "run.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document |= {"steps": "x", "services": [1], "queries": [{"query": "identify-errors"}, 7]}
    document["config"] = {"queries": "q3,zz", "kafka": None, "load": {"rate": "fast"}}
    path.write_text(json.dumps(document), encoding="utf-8")
    results = str(growing.run.root.parent)
    answer = CliRunner().invoke(app, ["watch", "--once", "--out", results])
    assert answer.exit_code == 0, answer.output
    assert "identify-errors: send" in answer.stdout


def test_watching_changes_nothing(
    growing: Growing, contents: Callable[[Path], dict[str, bytes]]
) -> None:
    growing.begin("identify-errors", "send")
    growing.batch("identify-errors", 5)
    growing.finish("failed", error="query: it fell; lift it")
    before = contents(growing.run.root)
    results = growing.run.root.parent
    answer = CliRunner().invoke(app, ["watch", "--json", "--web", "--out", str(results)])
    assert answer.exit_code == 0, answer.output
    seen = json.loads(answer.stdout)
    assert (seen["format"], seen["state"], seen["over"]) == ("espbench-live/1", "failed", True)
    assert seen["error"] == "query: it fell; lift it"
    assert contents(growing.run.root) == before


def test_the_command_ends_with_the_run(growing: Growing) -> None:
    growing.begin("identify-errors", "send")
    growing.run.document["config"]["kafka"] = {}
    growing.run.save()
    timer = threading.Timer(0.5, growing.finish)
    timer.start()
    results = growing.run.root.parent
    answer = CliRunner().invoke(app, ["watch", "--interval", "0.2", "--out", str(results)])
    timer.join()
    assert answer.exit_code == 0, answer.output
    assert "running · " in answer.stderr
    assert "identify-errors: send" in answer.stderr
    assert "finished" in answer.stdout


def test_wrong_words_are_refused(growing: Growing) -> None:
    results = str(growing.run.root.parent)
    for words in (["nobody"], ["--interval", "0"], ["--port", "70000"]):
        answer = CliRunner().invoke(app, ["watch", *words, "--out", results])
        assert answer.exit_code in {1, 2}
        assert answer.exception is not None


def test_the_page_is_served_here_alone_with_a_strict_policy(growing: Growing) -> None:
    growing.begin("identify-errors", "send")
    looker = Looker(RunFiles(growing.run.root), None)
    looker.look()
    with served(Board(looker.document(), 1.0), 0) as address:
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address) as page:
            policy = page.headers["Content-Security-Policy"]
            text = page.read().decode()
        assert policy.startswith("default-src 'none'")
        assert "connect-src 'self'" in policy
        assert "unsafe" not in policy
        assert RUN in text
        with urlopen(f"{address}live.json") as answer:
            assert json.load(answer)["run"] == RUN
        with pytest.raises(HTTPError, match="404") as missing:
            urlopen(f"{address}../run.json")
        missing.value.close()
        # Another site's name that resolves to this machine gets nothing.
        port = int(address.rstrip("/").rpartition(":")[2])
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/live.json", headers={"Host": f"evil.example:{port}"})
        assert connection.getresponse().status == 421
        connection.close()
        with (
            pytest.raises(ServiceError, match="cannot serve"),
            served(Board(looker.document(), 1.0), port),
        ):
            pass


def test_a_long_series_is_thinned_and_keeps_its_newest() -> None:
    series = Series()
    for at in range(MOST_POINTS + 1):
        series.add(at * 1_000.0, at)
    assert len(series.values) < MOST_POINTS
    assert series.values[-3:] == [MOST_POINTS - 2, MOST_POINTS - 1, MOST_POINTS]
    assert series.rate() == pytest.approx(1.0)


def test_every_query_has_a_way_to_its_inputs() -> None:
    for query in QUERIES:
        value = b"3;1;a\t1"
        assert input_of(query, value, 1) is not None
