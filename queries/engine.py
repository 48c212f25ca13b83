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
_ON_THE_DRIVER = (
    "our Python runs on the driver's machine only, and real-time mode needs it in every task",
    "use --engine micro-batch, or a local master",
)
# Answers pause for a checkpoint: longer intervals pause less often, and tell of themselves later.
REAL_TIME_MS = 10_000
# Where records reach Python in small batches, the last ones wait for the end of the interval.
PIPED_MS = 3_000
SHORTEST_PIPED_MS = 1_000
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
    """How one query is going to run: mode, master, time between triggers, Python in its tasks."""

    engine: Engine
    master: str
    trigger_ms: int
    piped: bool = False

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
    piped: Iterable[Engine] = (),
) -> Plan:
    """Decide how to run; `able` are the query's modes, fastest first.

    `tasks` are those that real-time mode runs at once: one a partition, one more to aggregate.

    `freshness_s` is how old a looked-up table may be, None for a query without one.
    `homeless` are modes whose state, kept by executors, would have no place that all can reach;
    `piped` those in which tasks run Python of ours.
    Raises `UsageError` for what Spark could not run, before anything is started.
    """
    modes, barred, with_python = tuple(able), tuple(homeless), tuple(piped)

    def obstacle(mode: Engine) -> tuple[str, str] | None:
        if mode in with_python and not is_local(master):
            return _ON_THE_DRIVER
        if mode in barred:
            return _HOMELESS
        shortest_ms = SHORTEST_PIPED_MS if mode in with_python else SHORTEST_REAL_TIME_MS
        return _obstacle(mode, master, tasks, trigger_ms, shortest_ms, freshness_s)

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
        in_python = engine in with_python
        trigger_ms = _interval_ms(freshness_s, in_python) if engine is Engine.REAL_TIME else 0
    return Plan(engine, _master(engine, master, tasks), trigger_ms, engine in with_python)


def _interval_ms(freshness_s: float | None, in_python: bool) -> int:
    """Between the checkpoints of real-time mode, where nobody says; tables stay fresh enough."""
    if in_python:
        return PIPED_MS
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
    shortest_ms: int,
    freshness_s: float | None,
) -> tuple[str, str] | None:
    """Why Spark could not run like this, and what to do; None where nothing stands against it."""
    if engine is Engine.AVAILABLE_NOW and trigger_ms is not None:
        return "available-now runs once and has no interval", "leave out --trigger-ms"
    if engine is not Engine.REAL_TIME:
        return None
    if trigger_ms is not None and trigger_ms < shortest_ms:
        return (
            f"--trigger-ms {trigger_ms} is too short for real-time mode's checkpoints",
            f"use {shortest_ms} or more; answers do not wait for it",
        )
    interval_ms = trigger_ms or shortest_ms
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
