"""What the server spent: processor time of its processes, bytes of its log."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from espbench.services.process import ProcessRecord
from schema.contract import Observer


@dataclass(slots=True)
class Spent:
    """Of one phase; None where it cannot be seen from here."""

    cpu_s: float | None = None
    log_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Meter:
    """Reads both counters; `record` is None for a server that others run."""

    record: ProcessRecord | None
    observer: Observer | None

    @contextmanager
    def measured(self) -> Iterator[Spent]:
        """What was spent inside, filled in at the end."""
        spent = Spent()
        cpu, log = self._cpu_s(), self._log_bytes()
        yield spent
        cpu_after, log_after = self._cpu_s(), self._log_bytes()
        if cpu is not None and cpu_after is not None:
            spent.cpu_s = max(0.0, cpu_after - cpu)
        if log is not None and log_after is not None:
            spent.log_bytes = log_after - log

    def _cpu_s(self) -> float | None:
        process = self.record.process() if self.record else None
        return None if process is None else tree_cpu_s(process)

    def _log_bytes(self) -> int | None:
        return None if self.observer is None else self.observer.log_bytes()


def tree_cpu_s(process: psutil.Process) -> float:
    """Processor seconds of a process, its living descendants, and children that have ended."""
    total = 0.0
    for member in [process, *process.children(recursive=True)]:
        try:
            times = member.cpu_times()
        except psutil.NoSuchProcess:
            continue  # its parent counts it from now on
        total += times.user + times.system + times.children_user + times.children_system
    return total
