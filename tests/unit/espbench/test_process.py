import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from espbench.paths import write_atomically
from espbench.services.process import ProcessRecord, last_lines, spawn, started_at, stop_tree


def test_a_record_finds_its_process_and_no_other(tmp_path: Path) -> None:
    record = ProcessRecord.of(os.getpid())
    record.write(tmp_path / "pid")
    again = ProcessRecord.read(tmp_path / "pid")
    assert again == record
    assert again is not None
    assert again.process() is not None
    assert ProcessRecord(os.getpid(), "another start").process() is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', '{"pid": "x", "started": "y"}'])
def test_a_torn_pid_file_says_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "pid").write_text(content, encoding="utf-8")
    assert ProcessRecord.read(tmp_path / "pid") is None


def test_an_ended_process_has_no_start() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert started_at(child.pid) is None


def test_stopping_ends_the_whole_family(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    log = tmp_path / "log"
    parent = spawn(
        [sys.executable, "-c", script], log=log, environment=os.environ, directory=tmp_path
    )
    record = ProcessRecord.of(parent.pid)
    while not log.read_text(encoding="utf-8").strip():
        assert parent.poll() is None
    child = int(log.read_text(encoding="utf-8"))
    assert stop_tree(record, signal.SIGTERM, grace_s=5) is True
    assert record.process() is None
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    assert stop_tree(record) is False


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    with pytest.raises(TypeError):
        write_atomically(path, 5)  # type: ignore[arg-type]
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_secret_is_never_readable_by_others(tmp_path: Path) -> None:
    write_atomically(tmp_path / "secret", "x", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_the_last_lines_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a\n\nb\nc\n", encoding="utf-8")
    assert last_lines(tmp_path / "log", 2) == ["b", "c"]
    assert last_lines(tmp_path / "absent") == []
