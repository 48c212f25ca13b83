"""Before a comparison begins it says what it will take."""

from pathlib import Path

import pytest
from typer.main import get_command

from espbench.cli import app
from espbench.databases.compare import Comparison
from espbench.databases.work import Work
from espbench.errors import ServiceError


def test_the_estimate_grows_with_what_is_asked() -> None:
    least = Work(rate=1_000, duration_s=10, step_s=0)
    seconds, size = least.estimate(profiles=1, scale=1)
    assert seconds > least.duration_s
    assert least.estimate(profiles=3, scale=1) == (3 * seconds, size)
    assert least.estimate(profiles=1, scale=2)[1] == 2 * size
    for more in (Work(1_000, 20, step_s=0), Work(1_000, 10), Work(1_000, 10, 0.1, 0, queries=True)):
        assert more.estimate(profiles=1, scale=1)[0] > seconds


def test_it_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def generate(_: Comparison) -> Path:
        raise ServiceError("stopped", "here")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Comparison, "_generate", generate)
    with pytest.raises(ServiceError):
        get_command(app).main(["databases"], standalone_mode=False)
    assert "3 profiles; about" in capsys.readouterr().err
