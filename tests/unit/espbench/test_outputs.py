"""What stands behind standard output may be gone, full or closed; no command minds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def shell(script: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    """Run a script in which `espbench` is ours; its exit code is that of the first in a pipe."""
    espbench = f'espbench() {{ "{sys.executable}" -m espbench "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", espbench + script],
        capture_output=True,
        text=True,
        cwd=directory,
        check=False,
    )


def test_a_reader_that_has_gone_changes_nothing(tmp_path: Path) -> None:
    # The reader is gone before a line is written; the code is the command's own.
    for command, code in (("config --json", 0), ("show nothing", 2)):
        script = f"{{ sleep 0.1; espbench {command}; }} 2>&1 | true; exit ${{PIPESTATUS[0]}}"
        answer = shell(script, tmp_path)
        assert (answer.returncode, answer.stdout, answer.stderr) == (code, "", "")


@pytest.mark.parametrize("command", ["config --json", "--version", "--help", "list"])
def test_a_full_output_is_one_line_and_exit_code_3(command: str, tmp_path: Path) -> None:
    answer = shell(f"espbench {command} > /dev/full", tmp_path)
    assert answer.returncode == 3
    assert "No space left on device" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_where_errors_cannot_be_told_the_exit_code_still_tells(tmp_path: Path) -> None:
    assert shell("espbench show nothing 2> /dev/full", tmp_path).returncode == 2
    assert shell("espbench config 2> /dev/full", tmp_path).returncode == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_not_missed(closed: str, tmp_path: Path) -> None:
    answer = shell(f"espbench config --json {closed}", tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    if ">&-" not in closed.replace("2>&-", ""):
        assert json.loads(answer.stdout)["load"]["rate"] == 1000


def test_what_the_terminal_cannot_show_is_spelled(tmp_path: Path) -> None:
    (tmp_path / "espbench.yml").write_text("results_dir: größe\n", encoding="utf-8")
    answer = shell("PYTHONIOENCODING=ascii espbench list", tmp_path)
    assert answer.returncode == 0
    assert "gr\\xf6\\xdfe" in answer.stdout
