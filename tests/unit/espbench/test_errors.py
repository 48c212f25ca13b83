import pytest

from espbench.errors import ExitCode, MissingExtra, ServiceError, worst


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], 0),
        ([ExitCode.DONE], 0),
        ([ExitCode.GATE_MISSED, ExitCode.DONE], 6),
        ([ExitCode.GATE_MISSED, ExitCode.UNKNOWN], 5),
        ([ExitCode.UNKNOWN, ExitCode.INCORRECT, ExitCode.GATE_MISSED], 4),
    ],
)
def test_4_beats_5_beats_6_beats_0(codes: list[ExitCode], expected: int) -> None:
    assert worst(codes) == expected


def test_an_error_is_one_line_with_cause_and_remedy() -> None:
    assert ServiceError("it\nfailed", "do  this").line() == "it failed; do this"


def test_a_missing_extra_names_the_command() -> None:
    error = MissingExtra("pyspark", "spark")
    assert "pip install 'espbench[spark]'" in error.line()
    assert error.exit_code == 3
