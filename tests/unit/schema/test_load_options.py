"""What `espbench load` makes of its options, before it looks for a server."""

import pytest
from typer.testing import CliRunner

from espbench.cli import app
from espbench.errors import UsageError

ADDRESS = ["load", "--reset", "--db", "postgresql://me@127.0.0.1:1/bench"]


@pytest.mark.parametrize(
    "arguments",
    [["--start-ms", "1767225600000000"], ["--start-in", "1e300"], ["--start-in", "nan"]],
)
def test_a_start_that_no_table_can_hold_is_refused(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, [*ADDRESS, *arguments])
    assert result.exit_code == 2
    assert arguments[0] in result.output


def test_a_start_is_named_once() -> None:
    result = CliRunner().invoke(app, [*ADDRESS, "--start-ms", "5", "--start-in", "3"])
    assert isinstance(result.exception, UsageError)
    assert "both name the start" in result.exception.cause
