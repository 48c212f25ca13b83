"""The clocks of other hosts."""

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from espbench.cli import app
from espbench.cli.capture import _clocks
from espbench.errors import InputError, ServiceError
from espbench.runs.clocks import PROGRAM, Answer, Round, against_first, ask, chrony_of, offset

MS = 1_000_000


def test_the_quickest_round_tells_the_offset_and_how_sure_it_is() -> None:
    rounds = [Round(0, 100 * MS, 50 * MS), Round(200 * MS, 206 * MS, 202 * MS)]
    found = offset(rounds)
    assert (found.offset_ms, found.uncertainty_ms) == (5.0, 1.0)


def test_a_clock_on_this_machine_is_ours() -> None:
    found = ask([sys.executable, "-c", PROGRAM])
    assert abs(found.offset_ms) <= found.uncertainty_ms + 0.001


def test_a_host_that_does_not_answer_is_named_with_its_words() -> None:
    with pytest.raises(ServiceError, match="no such host"):
        ask([sys.executable, "-c", "import sys; sys.exit('no such host')"])


# As chrony 4.3 wrote them, without a source and with itself for one, and a host of the network.
NO_SOURCE = "00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.000000000,1.000000000,0.0,Not synchronised"
WITH_SOURCE = (
    "C0000201,time.example,3,1795034050.6,-0.000200000,0.0,0.0,0.0,0.0,0.0,"
    "0.004000000,0.001000000,64.2,Normal"
)


def test_what_chrony_says_of_a_clock() -> None:
    found = chrony_of(WITH_SOURCE + "\n")
    assert found == {
        "synchronised": True,
        "reference": "time.example",
        "stratum": 3,
        "correction_ms": -0.2,
        # What is still to be corrected, the dispersion, and half of the way to the source.
        "error_ms": 3.2,
    }
    alone = chrony_of(NO_SOURCE)
    assert alone is not None
    assert (alone["synchronised"], alone["reference"]) == (False, None)


@pytest.mark.parametrize("line", ["", "506 Cannot talk to daemon", WITH_SOURCE.replace("3", "x")])
def test_what_is_no_answer_of_chrony_is_left_out(line: str) -> None:
    assert chrony_of(line) is None


def test_chrony_is_asked_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "chronyc"
    program.write_text(f"#!/bin/sh\n[ \"$*\" = '-c tracking' ] && echo '{WITH_SOURCE}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = ask([sys.executable, "-c", PROGRAM])
    assert found.chrony is not None
    assert found.chrony["stratum"] == 3
    program.write_text("#!/bin/sh\necho '506 Cannot talk to daemon'\nexit 1\n")
    assert ask([sys.executable, "-c", PROGRAM]).chrony is None


def test_brokers_are_compared_with_the_first() -> None:
    answers = {"b": Answer(7.0, 0.2, None), "a": Answer(1.0, 0.1, None), "s": Answer(9.0, 1, None)}
    (only,) = against_first(answers, ["a", "b"])
    assert only == {
        "node_id": 2,
        "host": "b",
        "against": "a",
        "offset_ms": 6.0,
        "uncertainty_ms": 0.3,
    }


def test_the_command_writes_what_capture_reads(tmp_path: Path) -> None:
    hosts = [f"--host={name}={sys.executable}" for name in ("a", "b")]
    out = tmp_path / "new" / "clocks.json"
    answer = CliRunner().invoke(
        app, ["clocks", *hosts, "--broker=a", "--broker=b", "--out", str(out)]
    )
    assert answer.exit_code == 0, answer.output
    document = json.loads(out.read_text(encoding="utf-8"))
    assert set(document["hosts"]) == {"a", "b"}
    assert [each["host"] for each in document["brokers"]] == ["b"]
    assert _clocks(out) == document["brokers"]


@pytest.mark.parametrize("text", ["[]", "{", "{}", '{"brokers": 1}'])
def test_a_file_that_tells_no_clocks_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "clocks.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="tells no clocks"):
        _clocks(file)
