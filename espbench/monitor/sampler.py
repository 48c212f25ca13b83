"""From counters to rates: one row per component and sample."""

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from espbench.monitor import processes
from espbench.monitor.components import Finder
from espbench.monitor.host import HostCounters, read_host
from espbench.monitor.jvm import JvmCounters
from espbench.monitor.processes import Key, Process
from espbench.monitor.switches import Switches
from espbench.timestamps import now_ms

Row = dict[str, Any]
_JAVA = "java"


@dataclass(slots=True)
class Usage:
    """What one process has used so far; `disk` is None where we may not know.

    `cpu_s` includes `waited_s`, that of children that it has waited for.
    """

    parent: int
    cpu_s: float
    waited_s: float = 0.0
    disk: tuple[int, int] | None = None
    gc_ms: float | None = None


@dataclass(slots=True)
class Sums:
    """What one component used since the last sample, and what it holds now."""

    cpu_s: float = 0.0
    read: float = 0.0
    written: float = 0.0
    knows_disk: bool = False
    threads: int = 0
    private_bytes: int = 0
    shared_bytes: int = 0
    gc_ms: float | None = None
    heap_bytes: int | None = None


class Sampler:
    """Takes samples; the first one only sets the marks from which rates are counted."""

    def __init__(self, finder: Finder, host: str, query: str | None = None) -> None:
        self.finder = finder
        self.host = host
        self.query = query
        self._before: dict[Key, Usage] = {}
        self._host_before: HostCounters | None = None
        self._time_before = 0.0
        # Of children that ended: what was counted, but not seen yet in who waited for them.
        self._unseen: dict[Key, float] = {}
        self._unseen_by_all = 0.0
        self._jvms: dict[Key, JvmCounters] = {}
        self._switches = Switches()

    def sample(self) -> list[Row]:
        """The rows of this moment; none the first time."""
        moment, wall_ms = time.monotonic(), now_ms()
        table = processes.table()
        host = read_host(sum(process.threads for process in table.values()))
        components = self.finder.assign(table)
        usage = {process.key: self._read(process, components) for process in table.values()}
        switches = self._switches.rates(moment, table, components)
        seconds = moment - self._time_before
        rows = []
        if self._host_before is not None and seconds > 0:
            all_s = self._of_all(usage)
            of_all = {"processes_percent": 100 * all_s / seconds}
            rows.append(host.row(self._host_before, seconds) | of_all)
            sums = self._compare(table, components, usage)
            rows += [
                _row(name, one, seconds) | _switches(switches.get(name))
                for name, one in sorted(sums.items())
            ]
        self._before, self._host_before, self._time_before = usage, host, moment
        self._forget_jvms(usage)
        common = {"time_ms": wall_ms, "host": self.host, "query": self.query}
        return [common | row for row in rows]

    def close(self) -> None:
        """Let go of what is open."""
        self._forget_jvms({})

    def _read(self, process: Process, components: Mapping[int, str]) -> Usage:
        usage = Usage(process.parent, process.cpu_s, process.waited_s)
        if process.pid in components:
            usage.disk = processes.disk_bytes(process.pid)
            jvm = self._jvm(process)
            usage.gc_ms = jvm.gc_ms() if jvm else None
        return usage

    def _jvm(self, process: Process) -> JvmCounters | None:
        if process.name == _JAVA and process.key not in self._jvms:
            counters = JvmCounters.of(process.pid)
            if counters:
                self._jvms[process.key] = counters
        return self._jvms.get(process.key)

    def _forget_jvms(self, living: Mapping[Key, Usage]) -> None:
        for key in [key for key in self._jvms if key not in living]:
            self._jvms.pop(key).close()

    def _compare(
        self,
        table: Mapping[int, Process],
        components: Mapping[int, str],
        usage: Mapping[Key, Usage],
    ) -> dict[str, Sums]:
        sums: dict[str, Sums] = defaultdict(Sums)
        ended, unseen = self._ended(usage), {}
        for pid, name in components.items():
            process = table[pid]
            key = process.key
            _hold(sums[name], process, self._jvms.get(key))
            # One that was not there a sample ago has used all of it since.
            before = self._before.get(key) or Usage(process.parent, 0.0, disk=(0, 0), gc_ms=0.0)
            now, gone = usage[key], ended.get(key, [])
            _add(sums[name], now, before)
            # Who waited for a child gets all of its use at once; most of it was counted before.
            waited_s = now.waited_s - before.waited_s - self._unseen.get(key, 0.0)
            counted_s = sum(one.cpu_s for one in gone)
            sums[name].cpu_s += max(0.0, waited_s - counted_s)
            # Its parent's line may have been read just before it was waited for.
            unseen[key] = max(0.0, counted_s - max(0.0, waited_s))
            _take_back(sums[name], gone)
        self._unseen = unseen
        return sums

    def _of_all(self, usage: Mapping[Key, Usage]) -> float:
        """CPU seconds of all processes since the last sample, each by its own counters.

        Who waited for whom does not matter here: what children left is one sum.
        """
        nothing = Usage(0, 0.0)
        own_s = waited_s = 0.0
        for key, now in usage.items():
            before = self._before.get(key, nothing)
            own_s += (now.cpu_s - now.waited_s) - (before.cpu_s - before.waited_s)
            waited_s += now.waited_s - before.waited_s
        waited_s -= self._unseen_by_all
        counted_s = sum(gone.cpu_s for key, gone in self._before.items() if key not in usage)
        self._unseen_by_all = max(0.0, counted_s - max(0.0, waited_s))
        return max(0.0, own_s) + max(0.0, waited_s - counted_s)

    def _ended(self, living: Mapping[Key, Usage]) -> dict[Key, list[Usage]]:
        """Those that ended since the last sample, by the nearest process above them that lives.

        A whole line may end between two samples: who waits for its head gets the use of all.
        """
        keys = {key[0]: key for key in self._before}
        found: dict[Key, list[Usage]] = defaultdict(list)
        for key, gone in self._before.items():
            if key in living:
                continue
            above = keys.get(gone.parent)
            while above is not None and above not in living:
                above = keys.get(self._before[above].parent)
            if above is not None:
                found[above].append(gone)
        return found


def _hold(sums: Sums, process: Process, jvm: JvmCounters | None) -> None:
    shared = min(processes.shared_bytes(process.pid), process.rss_bytes)
    sums.threads += process.threads
    sums.private_bytes += process.rss_bytes - shared
    sums.shared_bytes = max(sums.shared_bytes, shared)
    if jvm:
        sums.heap_bytes = (sums.heap_bytes or 0) + jvm.heap_bytes()


def _add(sums: Sums, now: Usage, before: Usage) -> None:
    sums.cpu_s += (now.cpu_s - now.waited_s) - (before.cpu_s - before.waited_s)
    if now.disk is not None:
        sums.knows_disk = True
        # Found only now, though it is older: its counters so far are the mark to count from.
        read, written = before.disk or now.disk
        sums.read += now.disk[0] - read
        sums.written += now.disk[1] - written
    if now.gc_ms is not None:
        mark = now.gc_ms if before.gc_ms is None else before.gc_ms
        sums.gc_ms = (sums.gc_ms or 0.0) + now.gc_ms - mark


def _take_back(sums: Sums, gone: list[Usage]) -> None:
    """The bytes that a parent got from children that ended: they were counted before."""
    for one in gone:
        if one.disk is not None:
            sums.read -= one.disk[0]
            sums.written -= one.disk[1]


def _row(name: str, sums: Sums, seconds: float) -> Row:
    # Below nothing it gets only where nobody waited for a child that ended.
    disk = (max(0.0, sums.read) / seconds, max(0.0, sums.written) / seconds)
    return {
        "component": name,
        "cpu_percent": 100 * max(0.0, sums.cpu_s) / seconds,
        "rss_bytes": sums.private_bytes + sums.shared_bytes,
        "read_bytes": disk[0] if sums.knows_disk else None,
        "written_bytes": disk[1] if sums.knows_disk else None,
        "threads": sums.threads,
        "gc_ms": None if sums.gc_ms is None else sums.gc_ms / seconds,
        "heap_bytes": sums.heap_bytes,
    }


def _switches(rates: tuple[float, float] | None) -> Row:
    if rates is None:
        return {}
    voluntary, involuntary = rates
    return {
        "voluntary_switches": voluntary,
        "involuntary_switches": involuntary,
        "context_switches": voluntary + involuntary,
    }
