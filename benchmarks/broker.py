"""A broker of a benchmark's own, its topics, and sends into them."""

import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from datagen import sensors
from datagen.parameters import Parameters
from espbench import services
from espbench.config import Settings, load_settings

ROOT = Path(__file__).parents[1]
ROWS = 100_003


@contextmanager
def broker() -> Iterator[tuple[Settings, Path]]:
    """A broker of our own; the jars are the checkout's."""
    with tempfile.TemporaryDirectory(prefix="espbench-sender-") as name:
        work = Path(name)
        (ROOT / ".espbench" / "jars").mkdir(parents=True, exist_ok=True)
        (work / "jars").symlink_to(ROOT / ".espbench" / "jars")
        os.environ["ESPBENCH_STATE_DIR"] = str(work)
        settings = load_settings(None, {"state_dir": work})
        (kafka,) = services.select(settings, ["kafka"])
        try:
            kafka.start()
            yield settings, work
        finally:
            kafka.stop()


@contextmanager
def topics(partitions: int = 1) -> Iterator[str]:
    """Topics of a run, deleted afterwards; yields the run's name."""
    run = f"b{uuid.uuid4().hex[:8]}"
    arguments = ["--run", run, "--quiet"]
    espbench("topics", "create", *arguments, "--queries", "q3", "--partitions", str(partitions))
    try:
        yield run
    finally:
        espbench("topics", "delete", *arguments)


def espbench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of ours."""
    command = [sys.executable, "-m", "espbench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def send(file: Path, *options: str, partitions: int = 1) -> dict[str, Any]:
    """Send into fresh topics; the report."""
    with topics(partitions) as run:
        sent = espbench("send", "--run", run, "--stream", f"1={file}", "--json", *options)
        if not sent.stdout:
            raise SystemExit(sent.stderr)
        report: dict[str, Any] = json.loads(sent.stdout)
        return report


def write_sensor_rows(path: Path) -> None:
    """A generated sensor file; its rows with id and time are about 205 bytes."""
    blocks = range(sensors.blocks(ROWS))
    path.write_bytes(b"".join(sensors.render(Parameters(), 1, each, ROWS)[0] for each in blocks))


def say(line: str) -> None:
    """Print at once."""
    print(line, flush=True)
