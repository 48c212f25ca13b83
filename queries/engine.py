"""Execution modes: how Spark is triggered, what it needs for that, and who can run how."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from espbench.errors import UsageError

AUTO = "auto"
# Spark refuses shorter ones. It is the time between checkpoints, not a latency: records are
# answered one by one in between.
SHORTEST_REAL_TIME_MS = 5_000
_HOMELESS = (
    "executors keep this query's state in real-time mode, but reach no directory of this machine",
    "name one that all share by --checkpoint or spark.checkpoint_dir, or use micro-batch",
)
# Answers pause for a checkpoint: longer intervals pause less often, and tell of themselves later.
REAL_TIME_MS = 10_000
# From the end of one interval until the next has read its tables.
REREAD_MS = 2_000


class Engine(StrEnum):
    """An execution mode of Spark Structured Streaming."""

    MICRO_BATCH = "micro-batch"
    REAL_TIME = "real-time"
    AVAILABLE_NOW = "available-now"

    @classmethod
    def fastest_first(cls) -> "tuple[Engine, ...]":
        """All modes, for a query that can run in any of them."""
        return cls.REAL_TIME, cls.MICRO_BATCH, cls.AVAILABLE_NOW


@dataclass(frozen=True, slots=True)
class Plan:
    """How one query is going to run: mode, master, and time between triggers."""

    engine: Engine
    master: str
    trigger_ms: int

    def trigger(self) -> dict[str, str | bool]:
        """The arguments of Spark's `DataStreamWriter.trigger`."""
        if self.engine is Engine.AVAILABLE_NOW:
            return {"availableNow": True}
        name = "realTime" if self.engine is Engine.REAL_TIME else "processingTime"
        return {name: f"{self.trigger_ms} milliseconds"}

    @property
    def output_mode(self) -> str:
        """Real-time mode knows updates only; for stateless queries both mean the same."""
        return "update" if self.engine is Engine.REAL_TIME else "append"


def choose(
    asked: str,
    able: Iterable[Engine],
    *,
    query: str,
    master: str,
    tasks: int,
    trigger_ms: int | None = None,
    freshness_s: float | None = None,
    homeless: Iterable[Engine] = (),
) -> Plan:
    """Decide how to run; `able` are the query's modes, fastest first.

    `tasks` are those that real-time mode runs at once: one a partition, one more to aggregate.

    `freshness_s` is how old a looked-up table may be, None for a query without one.
    `homeless` are modes whose state, kept by executors, would have no place that all can reach.
    Raises `UsageError` for what Spark could not run, before anything is started.
    """
    modes, barred = tuple(able), tuple(homeless)

    def obstacle(mode: Engine) -> tuple[str, str] | None:
        if mode in barred:
            return _HOMELESS
        return _obstacle(mode, master, tasks, trigger_ms, freshness_s)

    if asked == AUTO:
        engine = next(mode for mode in modes if obstacle(mode) is None)
    else:
        engine = _parse(asked)
        if engine not in modes:
            raise UsageError(
                f"{query} cannot run in the mode {engine}",
                f"use one of: {', '.join([AUTO, *modes])}",
            )
        if reason := obstacle(engine):
            raise UsageError(*reason)
    if trigger_ms is None:
        trigger_ms = _interval_ms(freshness_s) if engine is Engine.REAL_TIME else 0
    return Plan(engine, _master(engine, master, tasks), trigger_ms)


def _interval_ms(freshness_s: float | None) -> int:
    """Between the checkpoints of real-time mode, where nobody says; tables stay fresh enough."""
    if freshness_s is None:
        return REAL_TIME_MS
    enough_ms = int(freshness_s * 1_000) - REREAD_MS
    return max(SHORTEST_REAL_TIME_MS, min(REAL_TIME_MS, enough_ms))


def local_cores(master: str) -> int | None:
    """The threads of a local master, None for a cluster (or for `local[*]`: as many as needed)."""
    if master == "local":
        return 1
    found = re.fullmatch(r"local\[(\d+)(?:,\s*\d+)?\]", master)
    return int(found.group(1)) if found else None


def is_local(master: str) -> bool:
    """Whether everything runs inside the driver's process."""
    return master == "local" or master.startswith("local[")


def _parse(text: str) -> Engine:
    try:
        return Engine(text)
    except ValueError as error:
        known = ", ".join([AUTO, *Engine])
        raise UsageError(f"there is no engine {text!r}", f"the engines are: {known}") from error


def _obstacle(
    engine: Engine,
    master: str,
    tasks: int,
    trigger_ms: int | None,
    freshness_s: float | None,
) -> tuple[str, str] | None:
    """Why Spark could not run like this, and what to do; None where nothing stands against it."""
    if engine is Engine.AVAILABLE_NOW and trigger_ms is not None:
        return "available-now runs once and has no interval", "leave out --trigger-ms"
    if engine is not Engine.REAL_TIME:
        return None
    if trigger_ms is not None and trigger_ms < SHORTEST_REAL_TIME_MS:
        return (
            f"--trigger-ms {trigger_ms} is too short for real-time mode's checkpoints",
            f"use {SHORTEST_REAL_TIME_MS} or more; answers do not wait for it",
        )
    interval_ms = trigger_ms or SHORTEST_REAL_TIME_MS
    if freshness_s is not None and interval_ms + REREAD_MS > freshness_s * 1_000:
        enough_s = (interval_ms + REREAD_MS) / 1_000
        return (
            f"real-time mode reads tables every {interval_ms} ms, not within {freshness_s:g} s",
            f"use --engine micro-batch, or a freshness of {enough_s:g} s or more",
        )
    cores = local_cores(master)
    if cores is not None and cores < tasks:
        return (
            f"real-time mode runs {tasks} tasks at once, {master} has {cores} cores",
            f"use --master local[{tasks}] or --engine micro-batch",
        )
    return None


def _master(engine: Engine, master: str, tasks: int) -> str:
    """With `local[*]` the number of threads is ours; waiting tasks need a thread, not a core."""
    if master != "local[*]":
        return master
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    needed = tasks if engine is Engine.REAL_TIME else 1
    return f"local[{max(cores or 1, needed)}]"
