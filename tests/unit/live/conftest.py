"""A made-up run that grows under the eyes of the live view."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from espbench.live.broker import Seen
from espbench.live.files import Batch
from espbench.names import Query
from espbench.runs.store import RunDir

START_MS = 1_700_000_000_000.0
RUN = "20231114T221320-abcd"


class FakeTail:
    """Topics without a broker: `seconds` of sending have passed, two answers a second."""

    def __init__(self, *_: Any) -> None:
        self.seconds = 0
        self.closed = False

    def look(self, batches: list[Batch]) -> Seen:  # noqa: ARG002 - the contract
        self.seconds += 1
        now_ms = START_MS + self.seconds * 1_000
        samples = [(now_ms - 500, 100.0 + self.seconds), (now_ms, 300.0)]
        sent = 1_000 * self.seconds
        return Seen(now_ms, {1: sent}, 2 * self.seconds, START_MS, samples, {"a": sent - 40})

    def close(self) -> None:
        self.closed = True


class Growing:
    """The run's directory, and what happens in it."""

    def __init__(self, results: Path) -> None:
        config = {
            "queries": "q3,q1",
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "prefix": "espbench"},
            "load": {"rate": 1000.0, "duration": 32.0, "warmup": 10.0, "profile": "constant"},
            "slo": {"percentile": 90.0, "limit_ms": 2000.0},
        }
        begun = datetime.fromtimestamp(START_MS / 1_000, UTC).isoformat()
        self.run = RunDir.create(
            results,
            RUN,
            {
                "state": "running",
                "started": begun,
                "ended": None,
                "config": config,
                "machine": {"cores": 2},
                "services": [],
                "steps": [],
                "queries": [],
            },
        )

    def begin(self, query: str, step: str) -> None:
        (self.run.root / "logs" / f"{query}-{step}.log").touch()

    def end(self, query: Query | None, step: str) -> None:
        self.run.note_step(step, query, datetime.fromtimestamp(START_MS / 1_000, UTC), 2.0)

    def batch(self, query: str, rows: int, torn: str = "") -> None:
        line = json.dumps(
            {"timestamp": "2023-11-14T22:13:25Z", "batchDuration": 250, "numInputRows": rows}
        )
        path = self.run.root / "logs" / f"{query}-query-progress.jsonl"
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n{torn}")

    def finish(self, state: str = "finished", **more: Any) -> None:
        self.run.document |= {"state": state, "ended": self.run.document["started"]} | more
        self.run.save()


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    return Growing(tmp_path / "results")


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Every file below a directory, with its content."""

    def read(root: Path) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    return read
