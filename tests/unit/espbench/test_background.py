"""Commands in the background, and what ends with a run."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from espbench.background import Background, BackgroundFailedError
from espbench.errors import ExitCode, ServiceError
from espbench.parent import VARIABLE, mark, marked
from espbench.runs.secret import secret_file

# Asks somebody who never answers.
WAITING = ["clocks", "--host", f"a={sys.executable} -c 'import time; time.sleep(60)'", "--quiet"]


@pytest.fixture
def command(tmp_path: Path) -> Background:
    return Background(tmp_path / "a.pid", tmp_path / "a.log")


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_one_that_never_began_is_no_trouble(command: Background) -> None:
    command.check()
    assert not command.stop()
    assert command.wait_for_end(1)


def test_one_that_runs_is_ended_with_its_children(command: Background) -> None:
    command.start(WAITING)
    assert command.running()
    command.check()
    assert not command.wait_for_end(0.1)
    with pytest.raises(ServiceError, match="is running"):
        command.start(WAITING)
    assert command.stop()
    assert not command.running()
    wait_for(lambda: command.end() is not None)


def test_a_bad_end_is_told_in_its_own_words(command: Background) -> None:
    command.start(["query", "q9", "--run", "x"])
    with pytest.raises(BackgroundFailedError, match="there is no query 'q9'") as caught:
        command.wait_for_end(20)
    assert caught.value.exit_code == ExitCode.USAGE


def test_one_that_ends_before_it_is_ready_is_not_waited_for(
    command: Background, tmp_path: Path
) -> None:
    command.start(["--version"])
    with pytest.raises(ServiceError, match="ended before"):
        command.wait_for_file(tmp_path / "never", 20)


def test_a_command_ends_with_the_process_that_its_environment_names(tmp_path: Path) -> None:
    run = subprocess.Popen(["sleep", "60"])
    value = mark(run.pid)
    environment = {**os.environ, VARIABLE: value}
    with (tmp_path / "log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "espbench", *WAITING], env=environment, stderr=log
        )
    wait_for(lambda: len(marked(value)) == 2)  # the command, and what it asks
    assert child.poll() is None
    run.kill()
    run.wait()
    assert child.wait(20) == ExitCode.INTERRUPTED
    late = subprocess.run(
        [sys.executable, "-m", "espbench", "--version"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "is gone" in late.stderr
    assert late.returncode == 1
    for left in marked(value):
        left.kill()


def test_a_secret_can_be_read_while_the_run_lives_and_is_no_file_afterwards() -> None:
    with secret_file(SecretStr("s3cret")) as path:
        assert path is not None
        read = [sys.executable, "-c", f"print(open({str(path)!r}).read())"]
        assert "s3cret" in subprocess.run(read, capture_output=True, text=True, check=True).stdout
    assert not path.exists()
    with secret_file(None) as path:
        assert path is None
