"""What is kept of one execution of a query, and how files come into being."""

import json
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from espbench.errors import MachineError
from espbench.paths import make_dir, write_atomically
from queries.progress import Totals, malformed_file

FORMAT = "espbench-query/1"


@dataclass(slots=True)
class Report:
    """One execution; times are epoch milliseconds, None for what was never reached.

    `reason` is why it stopped: drained, idle, finished, interrupted, failed.
    """

    query: str
    run: str
    engine: str
    master: str
    trigger_ms: int
    guarantee: str
    emits: str
    freshness_s: float | None
    topics: dict[str, str]
    progress_file: Path
    log_file: Path
    checkpoint: Path
    settings: dict[str, str] = field(default_factory=dict)
    source_options: dict[str, str] = field(default_factory=dict)
    sink_options: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    started_ms: int | None = None
    # What was spent on the rehearsal before the query was ready.
    rehearsal_s: float = 0.0
    ready_ms: int | None = None
    stopped_ms: int | None = None
    reason: str | None = None
    error: str | None = None
    counters: dict[str, int] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)

    def _malformed_file(self) -> str | None:
        file = malformed_file(self.progress_file)
        return str(file) if file.exists() else None

    def document(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "format": FORMAT,
            "query": self.query,
            "run": self.run,
            "engine": self.engine,
            "master": self.master,
            "trigger_ms": self.trigger_ms,
            "guarantee": self.guarantee,
            "topics": self.topics,
            "started_ms": self.started_ms,
            "rehearsal_s": round(self.rehearsal_s, 1),
            "ready_ms": self.ready_ms,
            "stopped_ms": self.stopped_ms,
            "reason": self.reason,
            "error": self.error,
            "emits": self.emits,
            "freshness_s": self.freshness_s,
            **self.counters,
            "batches": self.totals.batches,
            "input_rows": self.totals.input_rows,
            "malformed": self.totals.malformed,
            "first_malformed": self.totals.first_malformed,
            "malformed_file": self._malformed_file(),
            "answered": {
                topic: {str(partition): end for partition, end in sorted(ends.items())}
                for topic, ends in self.totals.answered.items()
            },
            "progress_file": str(self.progress_file),
            "log_file": str(self.log_file),
            "checkpoint": str(self.checkpoint),
            "settings": self.settings,
            "source_options": self.source_options,
            "sink_options": self.sink_options,
            "versions": self.versions,
        }


def python_versions() -> dict[str, str]:
    """The versions of the packages behind a query."""
    return {"espbench": version("espbench"), "pyspark": version("pyspark")}


def write_json(path: Path, document: Any) -> None:
    """Write a file that appears all at once, or not at all."""
    make_dir(path.parent)
    try:
        write_atomically(path, json.dumps(document, indent=2) + "\n")
    except OSError as error:
        raise MachineError(
            f"cannot write {path}: {error.strerror}", "check permissions and disk"
        ) from error
