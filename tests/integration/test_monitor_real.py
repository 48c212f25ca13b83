"""The monitor as a command, on real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from espbench.monitor.store import draft_of, merge_system

# The work is done by a child of the named process: a component is a whole tree.
BUSY = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
DEADLINE_S = 60


@contextmanager
def process(*command: str) -> Iterator["subprocess.Popen[str]"]:
    child = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield child
    finally:
        # The group goes too: the busy loop is a child of this one.
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if child.stdout:
            child.stdout.close()


def wait_for_bytes(path: Path, least: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not path.exists() or path.stat().st_size < least:
        assert time.monotonic() < deadline, f"{path} did not grow"
        time.sleep(0.05)


def used_by_child(pid: int) -> tuple[float, float]:
    """The time, and what the one child of a process has used by then."""
    (child,) = psutil.Process(pid).children()
    times = child.cpu_times()
    return time.time(), times.user + times.system


def rows(path: Path, component: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return [row for row in found if row["component"] == component]


def test_a_busy_loop_is_seen_as_what_the_kernel_gave_it(tmp_path: Path) -> None:
    out = tmp_path / "system-identity.parquet"
    pid_file = tmp_path / "monitor.pid"
    with process("-c", BUSY) as busy:
        options = ["--interval", "0.2", "--query", "q0", "--pid-file", str(pid_file), "--json"]
        named = ["--process", f"busy={busy.pid}", "--process", f"later={tmp_path / 'none.pid'}"]
        command = ["-m", "espbench", "monitor", *named, *options, "--out", str(out)]
        with process(*command) as monitor:
            wait_for_bytes(draft_of(out), 1)
            begun = used_by_child(busy.pid)
            wait_for_bytes(draft_of(out), 20_000)
            ended = used_by_child(busy.pid)
            assert json.loads(pid_file.read_text(encoding="utf-8"))["pid"] == monitor.pid
            monitor.send_signal(signal.SIGTERM)
            answer, _ = monitor.communicate(timeout=DEADLINE_S)
            assert monitor.returncode == 0
    share = 100 * (ended[1] - begun[1]) / (ended[0] - begun[0])
    assert json.loads(answer)["components"] == ["busy", "host", "monitor"]
    assert not pid_file.exists()
    seen = rows(out, "busy")
    meanwhile = [row for row in seen if begun[0] * 1_000 < row["time_ms"] <= ended[0] * 1_000]
    mean = sum(row["cpu_percent"] for row in meanwhile) / len(meanwhile)
    # What the kernel gave it meanwhile, as others may want the machine as well.
    assert abs(mean - share) < 30
    # One loop, counted once.
    assert max(row["cpu_percent"] for row in seen) < 200
    assert {row["query"] for row in seen} == {"identity"}
    assert all(row["rss_bytes"] > 1_000_000 and row["threads"] >= 2 for row in seen)
    assert rows(out, "monitor")
    assert merge_system(tmp_path) == tmp_path / "system.parquet"


def test_a_killed_monitor_leaves_its_draft(tmp_path: Path) -> None:
    out = tmp_path / "system-identity.parquet"
    command = ["-m", "espbench", "monitor", "--interval", "0.05", "--out", str(out)]
    with process(*command):
        wait_for_bytes(draft_of(out), 20_000)
    assert not out.exists()
    whole = merge_system(tmp_path)
    assert whole is not None
    assert len(rows(whole, "host")) >= 20


def test_it_ends_with_the_tree_that_it_watches(tmp_path: Path) -> None:
    out = tmp_path / "system.parquet"
    with process("-c", "import time; time.sleep(3600)") as root:
        command = ["-m", "espbench", "monitor", "--interval", "0.1", "--tree", str(root.pid)]
        with process(*command, "--out", str(out)) as monitor:
            wait_for_bytes(draft_of(out), 2_000)
            root.kill()
            root.wait()
            monitor.communicate(timeout=DEADLINE_S)
            assert monitor.returncode == 0
    assert rows(out, "run")
