"""What `espbench load` makes of its options, before it looks for a server."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from espbench.cli import app
from espbench.cli.load import _check_asked
from espbench.errors import UsageError
from schema.dataset import DataSet, TableFile

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


def test_a_data_set_of_another_scale_or_seed_is_refused() -> None:
    data_set = DataSet("", {}, TableFile(Path("times"), 0, ""), 1, 2021, "run", 100)
    _check_asked(data_set, Path("data"), scale=None, seed=None)
    _check_asked(data_set, Path("data"), scale=1, seed=2021)
    with pytest.raises(UsageError, match="--scale 2 is not that of the data set in data, 1"):
        _check_asked(data_set, Path("data"), scale=2, seed=None)
    with pytest.raises(UsageError, match="--seed 0 is not"):
        _check_asked(data_set, Path("data"), scale=1, seed=0)
