"""Which process belongs to which component of the benchmark.

A component begins at a process and holds its descendants, down to where another one begins:

    --process NAME=PID or NAME=PIDFILE    a process that we are told
    services                              the embedded servers, by their pid files
    espbench COMMAND                      sender, query, validator … by their command lines
    java below a query                    spark; Python below that: spark-python

Everything may appear late and vanish: the question is asked anew with every sample.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from espbench.errors import UsageError
from espbench.monitor import processes
from espbench.monitor.processes import Key, Process
from espbench.services.process import ProcessRecord

HOST, MONITOR, QUERY, SPARK, SPARK_PYTHON = "host", "monitor", "query", "spark", "spark-python"
_NAMES = {"send": "sender", "validate": "validator", "capture": "capture"}
# A new process wears its parent's command line until it calls exec; ask again while it is young.
_YOUNG_S = 5.0


def parse_process(text: str) -> tuple[str, int | Path]:
    """`NAME=PID` or `NAME=PIDFILE`."""
    name, equals, where = text.partition("=")
    if not equals or not name or not where:
        raise UsageError(
            f"--process {text} names no process", "write it as NAME=PID or NAME=PIDFILE"
        )
    if name == HOST:
        raise UsageError(f"--process {text}: {HOST} stands for the whole host", "use another name")
    return name, int(where) if where.isdigit() else Path(where)


def espbench_command(arguments: tuple[str, ...]) -> str | None:
    """`send` for the command line of `espbench send …`, however it was started."""
    for place, word in enumerate(arguments[:-1]):
        is_module = word == "espbench" and place > 0 and arguments[place - 1] == "-m"
        if is_module or (place <= 1 and word.rpartition("/")[2] == "espbench"):
            command = arguments[place + 1]
            return None if command.startswith("-") else command
    return None


@dataclass(slots=True)
class Finder:
    """Finds the components in a process table.

    `named` are processes by pid or pid file. With `tree`, that process and all below it are looked
    through for `espbench` commands; with `run`, all processes whose command line holds this run's
    id; with `everything`, all `espbench` commands of the machine.
    """

    named: Mapping[str, int | Path]
    tree: int | None = None
    run: str | None = None
    everything: bool = False
    _lines: dict[Key, tuple[str, ...]] = field(default_factory=dict)

    def assign(self, table: Mapping[int, Process]) -> dict[int, str]:
        """The component of each process that belongs to one, by pid."""
        roots = {pid: name for name, where in self.named.items() if (pid := _pid(where)) in table}
        roots[os.getpid()] = MONITOR
        found: dict[int, str | None] = {}
        for pid in table:
            self._assign(pid, table, roots, found)
        living = {process.key for process in table.values()}
        self._lines = {key: line for key, line in self._lines.items() if key in living}
        return {pid: name for pid, name in found.items() if name}

    def _assign(
        self,
        pid: int,
        table: Mapping[int, Process],
        roots: Mapping[int, str],
        found: dict[int, str | None],
    ) -> None:
        way = []
        # Up to a process whose component is known, then down again.
        while pid in table and pid not in found:
            found[pid] = None
            way.append(table[pid])
            pid = table[pid].parent
        for process in reversed(way):
            above = found.get(process.parent)
            found[process.pid] = roots.get(process.pid) or self._classify(process, above)

    def _classify(self, process: Process, above: str | None) -> str | None:
        if above in {SPARK, SPARK_PYTHON}:
            return SPARK_PYTHON if process.name.startswith("python") else above
        if above == QUERY and process.name == "java":
            return SPARK
        below_tree = process.pid == self.tree or above is not None
        if not (below_tree or self.run or self.everything):
            return None
        line = self._line(process)
        command = espbench_command(line)
        ours = below_tree or self.everything or any(str(self.run) in word for word in line)
        if command and ours:
            return _NAMES.get(command, command)
        return above or ("run" if process.pid == self.tree else None)

    def _line(self, process: Process) -> tuple[str, ...]:
        known = self._lines.get(process.key)
        if known is None:
            known = processes.arguments(process.pid)
            if time.clock_gettime(_SINCE_BOOT) - process.started > _YOUNG_S:
                self._lines[process.key] = known
        return known


_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_REALTIME)


def _pid(where: int | Path) -> int:
    """The pid, or what a pid file says: one of ours, or a number in its first line; -1 if none."""
    if isinstance(where, int):
        return where
    record = ProcessRecord.read(where)
    if record is not None:
        return record.pid if record.process() else -1
    try:
        return int(where.read_text(encoding="utf-8").split()[0])
    except (OSError, ValueError, IndexError):
        return -1
