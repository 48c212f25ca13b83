"""Context switches of components: thread by thread, so not with every sample."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from espbench.monitor import processes
from espbench.monitor.processes import Key, Process

Counts = dict[int, tuple[int, int]]
# Hundreds of files, one per thread: read each second they would cost more than all the rest.
EVERY_S = 5.0


class Switches:
    """Rates of voluntary and involuntary switches, every few seconds.

    What a thread did that came and went between two readings is not seen.
    """

    def __init__(self, read: Callable[[int], Counts] = processes.switches) -> None:
        self._read = read
        self._moment: float | None = None
        self._before: dict[Key, Counts] = {}
        self._there_before: set[Key] = set()

    def rates(
        self, moment: float, table: Mapping[int, Process], components: Mapping[int, str]
    ) -> dict[str, tuple[float, float]]:
        """Per second since the last reading, by component; empty while none is due."""
        # A little early is due: beats are never exactly apart.
        if self._moment is not None and moment - self._moment < EVERY_S - 0.1:
            return {}
        now = {table[pid].key: self._read(pid) for pid in components}
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for pid, name in components.items():
            key = table[pid].key
            before = self._before.get(key)
            if now[key] and (before is not None or key not in self._there_before):
                for thread, counts in now[key].items():
                    known = (before or {}).get(thread, (0, 0))
                    sums[name][0] += counts[0] - known[0]
                    sums[name][1] += counts[1] - known[1]
        seconds = moment - self._moment if self._moment is not None else None
        self._moment, self._before = moment, now
        self._there_before = {process.key for process in table.values()}
        if not seconds:
            return {}
        return {name: (both[0] / seconds, both[1] / seconds) for name, both in sums.items()}
