"""What a run's directory tells while it grows: its state, the step, the batches, the processes.

Only reads. Files are written by others meanwhile, so what is torn or not there yet is left out and
read at the next look.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from espbench.errors import ServiceError
from espbench.monitor.store import SCHEMA, draft_of, read_draft
from espbench.names import QUERIES, Query, find_query
from espbench.reports.reading import at, number
from espbench.runs.plan import QUERY_STEPS, RUN_STEPS
from espbench.runs.store import RunDir
from espbench.runs.view import Follower
from espbench.services.process import ProcessRecord

# Steps as their logs are called, in their order.
_LOGGED = tuple(
    name
    for step in QUERY_STEPS
    for name in {
        "monitoring": ("monitoring-on",),
        "query": ("query-start",),
        "drain": ("drain", "monitoring-off"),
    }.get(step, (step,))
)
_OVER = frozenset({"finished", "interrupted", "failed"})


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of Spark that had input: its end, how long it took, its rows, its offsets."""

    end_ms: float
    took_ms: float
    rows: int
    # topic → partition → offset; `begin` inclusive, `end` exclusive.
    begin: dict[str, dict[int, int]]
    end: dict[str, dict[int, int]]


@dataclass(slots=True)
class RunFiles:
    """The files of one run, read again and again; `refresh` first, then the rest."""

    root: Path
    clock: Callable[[], float] = time.time
    document: dict[str, Any] = field(default_factory=dict)
    _follower: Follower = field(default_factory=Follower)
    _sizes: dict[Path, int] = field(default_factory=dict)

    def refresh(self) -> None:
        """Read run.json again; raises where it is no run, or the run's process is gone."""
        self._read()
        owner = ProcessRecord.read(self.root / "run.pid")
        if self.state == "running" and owner is not None and owner.process() is None:
            # Its last words may have been written since.
            self._read()
            if self.state == "running":
                raise ServiceError(
                    f"the run {self.run_id} is gone: its process {owner.pid} ended without a word",
                    f"go on with it by `espbench run --resume {self.run_id}`",
                )

    def _read(self) -> None:
        """Take run.json; lists that hold anything but objects are not of our making."""
        self.document = RunDir.open(self.root).document
        for name in ("steps", "services", "queries"):
            entries = self.document.get(name)
            listed = entries if isinstance(entries, list) else []
            self.document[name] = [each for each in listed if isinstance(each, dict)]

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.document.get("run_id") or self.root.name)

    @property
    def state(self) -> str:
        """The run's own word for its state."""
        return str(self.document.get("state") or "unknown")

    @property
    def over(self) -> bool:
        """Whether nothing more will come; a playbook called by hand is over with its verdicts."""
        if self.state == "prepared":
            asked = self.queries()
            return bool(asked) and all(
                (self.root / f"verdict-{query.name}.json").exists() for query in asked
            )
        return self.state in _OVER

    def elapsed_s(self) -> float:
        """Since the run's start; of an ended run, how long it took."""
        begun = epoch_ms(self.document.get("started"))
        ended = epoch_ms(self.document.get("ended")) if self.over else None
        return 0.0 if begun is None else max(0.0, (ended or self.clock() * 1_000) - begun) / 1_000

    def queries(self) -> list[Query]:
        """The queries that the run was asked for, in their order."""
        words = str(at(self.document, "config", "queries") or "").split(",")
        known = {word for query in QUERIES for word in (query.name, query.short, str(query.number))}
        return [find_query(word) for word in words if word.strip().lower() in known]

    def verdicts(self) -> dict[str, dict[str, Any]]:
        """The verdicts so far, by query."""
        found = self.document["queries"]
        return {str(each["query"]): each for each in found if at(each, "query")}

    def broker(self) -> str | None:
        """Kafka's address, given or embedded; None before it is known."""
        given = at(self.document, "config", "kafka", "bootstrap_servers")
        if given:
            return str(given)
        services = self.document["services"]
        # A resumed run has several entries; the last one is running.
        return next(
            (str(each["address"]) for each in reversed(services) if at(each, "name") == "kafka"),
            None,
        )

    def step(self) -> tuple[str, Query | None, float] | None:
        """What the run is doing: the step, its query, and since when (epoch seconds).

        Every step has a log from its begin on, and stands in run.json from its end on.
        """
        if self.over:
            return None
        steps = self.document["steps"]
        done = {(each.get("step"), each.get("query")) for each in steps}
        query = self.current()
        for step in reversed(RUN_STEPS if query is None else _LOGGED):
            log = self.root / "logs" / (f"{query.name}-{step}.log" if query else f"{step}.log")
            if (step, query.name if query else None) not in done and log.exists():
                return step, query, self._last_end_s()
        return None

    def _last_end_s(self) -> float:
        """When the last step ended that did, which is when the next one began."""
        last = (self.document["steps"] or [{}])[-1]
        begun = epoch_ms(last.get("started") or self.document.get("started"))
        took_s = number(last.get("seconds")) or 0.0
        return self.clock() if begun is None else begun / 1_000 + took_s

    def current(self) -> Query | None:
        """The query that the run is at: the one whose logs are the newest."""
        newest = [
            (max((_made(log) for log in self._logs(query)), default=0.0), at)
            for at, query in enumerate(self.queries())
        ]
        time_s, place = max(newest, default=(0.0, 0))
        return self.queries()[place] if time_s else None

    def batches(self, query: Query) -> list[Batch]:
        """The batches since the last call."""
        file = self.root / "logs" / f"{query.name}-query-progress.jsonl"
        return [batch for line in self._follower.new_lines(file) if (batch := _batch(line))]

    def usage(self, query: Query) -> pa.Table | None:
        """All samples of the query's monitor so far; None where nothing is new."""
        whole = self.root / f"system-{query.name}.parquet"
        for path in (draft_of(whole), whole):
            try:
                size = path.stat().st_size
            except OSError:
                continue
            if size == self._sizes.get(path, 0):
                return None
            self._sizes[path] = size
            return pq.read_table(path, schema=SCHEMA) if path == whole else read_draft(path)
        return None

    def _logs(self, query: Query) -> list[Path]:
        return [self.root / "logs" / f"{query.name}-{step}.log" for step in _LOGGED]


def epoch_ms(text: Any) -> float | None:
    """An ISO time as epoch milliseconds; None where it is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp() * 1_000
    except ValueError:
        return None


def _made(file: Path) -> float:
    """When a log was last written; 0 where there is none."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _batch(line: str) -> Batch | None:
    try:
        progress = json.loads(line)
    except ValueError:
        return None
    begun, took = epoch_ms(at(progress, "timestamp")), number(at(progress, "batchDuration"))
    rows = int(number(at(progress, "numInputRows")) or 0)
    if begun is None or took is None or not rows:
        return None
    batch = Batch(begun + took, took, rows, {}, {})
    for source in progress.get("sources") or []:
        for key, offsets in (("startOffset", batch.begin), ("endOffset", batch.end)):
            for topic, partitions in (at(source, key) or {}).items():
                offsets[topic] = {int(each): int(offset) for each, offset in partitions.items()}
    return batch
