"""What `espbench send` makes of its options."""

import pytest
from typer.testing import CliRunner

from espbench.cli import app
from espbench.cli.send import _rates
from espbench.errors import ConfigError, EspbenchError, InputError, ServiceError, UsageError


def failure(*arguments: str) -> EspbenchError:
    result = CliRunner().invoke(app, ["send", *arguments])
    assert isinstance(result.exception, EspbenchError), result.output
    return result.exception


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--stream", "1"], "--stream 1 does not name a stream"),
        (["--stream", "4=x"], "--stream 4=x does not name a stream"),
        (["--stream", "1=a", "--stream", "1=b"], "--stream names stream 1 twice"),
        (["--stream", "1=a", "--rate", "fast"], "--rate fast is not a number"),
        (["--stream", "1=a", "--rate", "0"], "--rate 0 is not a rate"),
        (["--stream", "1=a", "--rate", "nan"], "--rate nan is not a rate"),
        (["--stream", "1=a", "--rate", "1e300"], "--rate 1e300 is not a rate"),
        (["--stream", "1=a", "--linger-ms", "nan"], "linger_ms = nan is not allowed"),
        (["--stream", "1=a", "--out", "/"], "/ is a directory"),
        (["--stream", "1=a", "--rate", "1", "--rate", "2"], "given twice"),
        (["--stream", "1=a", "--rate", "2=5"], "stream 2, which is not sent"),
        (["--stream", "1=a", "--acks", "1", "--idempotence"], "idempotence needs acks=all"),
    ],
)
def test_wrong_options_are_named(arguments: list[str], words: str) -> None:
    given = ["--run", "r", "--bootstrap-servers", "127.0.0.1:1", *arguments]
    error = failure(*given)
    assert isinstance(error, UsageError)
    assert words in error.cause


def test_a_missing_file_is_found_before_kafka_is_asked() -> None:
    error = failure("--run", "r", "--stream", "1=nowhere.csv", "--bootstrap-servers", "127.0.0.1:1")
    assert isinstance(error, InputError)


def test_without_a_broker_the_remedy_is_up(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESPBENCH_STATE_DIR", str(tmp_path))
    error = failure("--run", "r", "--stream", "1=x.csv")
    assert isinstance(error, ServiceError)
    assert "espbench up" in error.remedy


@pytest.mark.parametrize("duration", ["0", "1e300", "nan"])
def test_an_impossible_duration_is_refused(duration: str) -> None:
    error = failure("--run", "r", "--stream", "1=x.csv", "--duration", duration)
    assert isinstance(error, ConfigError)
    assert "load.duration" in error.cause


@pytest.mark.parametrize(
    "arguments", [["--start-ms", "1767225600000000"], ["--lead", "1e300"], ["--lead", "nan"]]
)
def test_a_start_that_nobody_will_see_is_refused(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["send", "--run", "r", "--stream", "1=x.csv", *arguments])
    assert result.exit_code == 2
    assert arguments[0] in result.output


def test_rates_for_all_and_for_one() -> None:
    assert _rates(["100", "2=5"], {1: "a", 2: "b"}) == {None: 100.0, 2: 5.0}
    assert _rates([], {1: "a"}) == {}
