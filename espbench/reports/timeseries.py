"""What happened over time, as series: latency, lag, rates, lateness, batches, components.

Every function takes the run's files and the query's window and gives chart documents (see
`charts`), or None where the evidence is not there.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from espbench.monitor.components import HOST
from espbench.reports.reading import Files, at, number
from espbench.reports.thinning import Floats

EVERYTHING_ELSE = "everything else"
PROCESSES = "processes_percent"


@dataclass(frozen=True, slots=True)
class Latencies:
    """Every matched output: when its input came, how long the answer took, and what part of it."""

    time_s: Floats
    latency_ms: Floats
    end_to_end_ms: Floats
    after_warmup: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.time_s)


def read_latencies(files: Files, query: str, start_ms: float | None) -> tuple[Latencies, float]:
    """All latencies of a query, and the start that their times count from (0: not known)."""
    columns = ("in_ms", "latency_ms", "end_to_end_ms", "after_warmup")
    table = files.table(f"latencies-{query}.parquet", columns)
    if table is None or not len(table):
        nothing = np.zeros(0)
        return Latencies(nothing, nothing, nothing, nothing.astype(np.bool_)), start_ms or 0.0
    in_ms, latency_ms, end_to_end_ms = (floats(table, name) for name in columns[:3])
    start = float(in_ms.min()) if start_ms is None else start_ms
    after = pc.fill_null(table["after_warmup"], False).to_numpy().astype(np.bool_)  # noqa: FBT003 - a value
    return Latencies((in_ms - start) / 1_000, latency_ms, end_to_end_ms, after), start


@dataclass(frozen=True, slots=True)
class LagSeries:
    """Answers owed and given up to a moment, and the lag then, sampled every second."""

    time_s: Floats
    lag: Floats
    owed: Floats
    given: Floats


def read_lag(files: Files, query: str, start_ms: float) -> LagSeries | None:
    """The lag of a query; without a known start, time counts from the first sample."""
    table = files.table(f"lag-{query}.parquet", ("time_ms", "lag", "owed", "given"))
    if table is None or not len(table):
        return None
    time_ms = floats(table, "time_ms")
    time_s = (time_ms - (start_ms or time_ms[0])) / 1_000
    return LagSeries(time_s, *(floats(table, name) for name in ("lag", "owed", "given")))


def read_peaks(
    files: Files, query: str, start_ms: float, expected: float | None
) -> tuple[Floats, Floats] | None:
    """The middle of every second and the highest lag in it, from all answers.

    None where not every expected answer is known: the lag would be higher by the others.
    """
    table = files.table(f"latencies-{query}.parquet", ("in_ms", "latency_ms"))
    if table is None or not len(table) or len(table) != expected:
        return None
    owed_ms = floats(table, "in_ms")
    # As in the verdict: an answer is not given before it is owed.
    given_ms = owed_ms + np.maximum(floats(table, "latency_ms"), 0.0)
    return peaks((owed_ms - start_ms) / 1_000, (given_ms - start_ms) / 1_000)


def peaks(owed_s: Floats, given_s: Floats) -> tuple[Floats, Floats]:
    """The middle of every second and the highest lag in it."""
    time_s, place = np.unique(np.concatenate([owed_s, given_s]), return_inverse=True)
    change = np.where(np.arange(len(place)) < len(owed_s), 1.0, -1.0)
    lag = np.cumsum(np.bincount(place, weights=change))
    first, last = np.floor(time_s[0]), np.floor(time_s[-1])
    seconds = np.arange(first, last + 1)
    # A second begins with what the one before left.
    before = np.searchsorted(time_s, seconds, side="left") - 1
    highest = np.where(before >= 0, lag[before], 0.0)
    np.maximum.at(highest, (np.floor(time_s) - first).astype(np.int64), lag)
    return seconds + 0.5, highest


@dataclass(frozen=True, slots=True)
class Lateness:
    """LogAppendTime - due of source records, by stream; `every` record or the answered ones."""

    streams: dict[str, tuple[Floats, Floats]]
    every: bool


def read_lateness(files: Files, query: str, start_ms: float) -> Lateness | None:
    """From the captured source topics; where the capture was dropped, from the answered inputs."""
    capture = files.document(f"capture/{query}/capture.json")
    streams: dict[str, tuple[Floats, Floats]] = {}
    for topic in at(capture, "topics") or []:
        role = str(at(topic, "role"))
        path = files.root / "capture" / query / str(at(topic, "file"))
        if role.startswith("source-") and path.parent.name == query and path.is_file():
            try:
                due_ms, late_ms = _due_of(path)
            except (OSError, pa.ArrowException) as error:
                files.problems.append(f"{path.name} cannot be read: {error}")
                continue
            if len(due_ms):
                streams[f"stream {role[-1]}"] = ((due_ms - start_ms) / 1_000, late_ms)
    if streams:
        return Lateness(streams, every=True)
    table = files.table(f"latencies-{query}.parquet", ("in_ms", "due_ms"))
    if table is None:
        return None
    table = table.filter(pc.is_valid(table["due_ms"]))
    if not len(table):
        return None
    due_ms = floats(table, "due_ms")
    late_ms = floats(table, "in_ms") - due_ms
    return Lateness({"answered records": ((due_ms - start_ms) / 1_000, late_ms)}, every=False)


def _due_of(path: Any) -> tuple[Floats, Floats]:
    """When records were due, and how late they were stamped; malformed ones are left out."""
    due, late = [], []
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=200_000, columns=["timestamp_ms", "value"]):
            head = pc.binary_slice(batch["value"], 0, 40)
            found = pc.extract_regex(head, rb"^[0-9]{1,15};(?P<due>[0-9]{1,15});")
            due_ms = pc.cast(pc.cast(pc.struct_field(found, "due"), pa.string()), pa.int64())
            late_ms = pc.subtract(batch["timestamp_ms"], due_ms)
            known = pc.is_valid(due_ms)
            due.append(due_ms.filter(known).to_numpy().astype(np.float64))
            late.append(late_ms.filter(known).to_numpy().astype(np.float64))
    nothing = np.zeros(0)
    return np.concatenate([nothing, *due]), np.concatenate([nothing, *late])


@dataclass(frozen=True, slots=True)
class Batches:
    """Spark's batches that had input: when they ended, how long they took, how much they held."""

    time_s: Floats
    duration_ms: Floats
    rows: Floats


def read_batches(files: Files, query: str, start_ms: float, end_s: float) -> Batches | None:
    """The batches that ended between start and end, from the query's progress file."""
    rows = []
    for each in files.lines(f"logs/{query}-query-progress.jsonl"):
        begun, took = _epoch_ms(each.get("timestamp")), number(each.get("batchDuration"))
        if begun is not None and took is not None:
            ended_s = (begun + took - start_ms) / 1_000
            rows.append((ended_s, took, number(each.get("numInputRows")) or 0.0))
    if not rows:
        return None
    found = np.array(rows)
    found = found[(found[:, 0] >= 0) & (found[:, 0] <= end_s) & (found[:, 2] > 0)]
    return Batches(found[:, 0], found[:, 1], found[:, 2]) if len(found) else None


@dataclass(frozen=True, slots=True)
class Usage:
    """What one component used: processor in percent of one core, resident memory.

    `processes_percent` is for a host: that of all its processes, each by its own counters, which
    are finer than the host's; None where it was not recorded.
    """

    component: str
    time_s: Floats
    cpu_percent: Floats
    rss_bytes: Floats
    processes_percent: Floats | None = None


def read_usage(files: Files, start_ms: float, end_ms: float) -> list[Usage]:
    """What every component used in a query's time, the busiest first."""
    columns = ("time_ms", "host", "component", "cpu_percent", "rss_bytes")
    table = files.table("system.parquet", columns, optional=(PROCESSES,))
    if table is None:
        return []
    times = table["time_ms"]
    inside = pc.and_(pc.greater_equal(times, int(start_ms)), pc.less_equal(times, int(end_ms)))
    return usage_of(table.filter(inside).sort_by("time_ms"), start_ms)


def usage_of(table: pa.Table, start_ms: float) -> list[Usage]:
    """What every component used, by samples in the order of time; the busiest first."""
    hosts = pc.unique(table["host"]).to_pylist()
    found = []
    for host in hosts:
        of_host = table.filter(pc.equal(table["host"], host)) if host is not None else table
        for component in pc.unique(of_host["component"]).to_pylist():
            rows = of_host.filter(pc.equal(of_host["component"], component))
            if not len(rows):
                continue
            name = str(component) if len(hosts) == 1 else f"{component} on {host}"
            time_s = (floats(rows, "time_ms") - start_ms) / 1_000
            of_all = floats(rows, PROCESSES) if PROCESSES in rows.column_names else None
            if of_all is not None and np.isnan(of_all).all():
                of_all = None
            cpu_percent, rss_bytes = floats(rows, "cpu_percent"), floats(rows, "rss_bytes")
            found.append(Usage(name, time_s, cpu_percent, rss_bytes, of_all))
    return sorted(found, key=lambda each: -float(np.nanmean(np.nan_to_num(each.cpu_percent))))


def everything_else(found: list[Usage]) -> list[Usage]:
    """Of every host, what none of its components used; not below nothing.

    By the sum of all processes where it is known, by the host's own count where it is not.
    """
    rest = []
    for host in found:
        name, on, where = host.component.partition(" on ")
        if name != HOST:
            continue
        known = np.zeros(len(host.time_s))
        for each in found:
            if each is host or not each.component.endswith(f"{on}{where}"):
                continue
            # Rows of one sample have one time.
            place = np.searchsorted(host.time_s, each.time_s)
            there = place < len(known)
            there[there] = host.time_s[place[there]] == each.time_s[there]
            np.add.at(known, place[there], np.nan_to_num(each.cpu_percent[there]))
        whole = host.cpu_percent if host.processes_percent is None else host.processes_percent
        left = np.maximum(whole - known, 0.0)
        nothing = np.full(len(known), np.nan)
        rest.append(Usage(f"{EVERYTHING_ELSE}{on}{where}", host.time_s, left, nothing))
    return rest


def floats(table: pa.Table, column: str) -> Floats:
    """A column as numbers; nulls are NaN."""
    values = pc.cast(table[column], pa.float64(), safe=False)
    return np.asarray(values.to_numpy(), dtype=np.float64)


def _epoch_ms(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp() * 1_000
    except ValueError:
        return None
