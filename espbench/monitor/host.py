"""The host as a whole: processors, memory, disks, networks."""

from dataclasses import dataclass
from typing import Any

import psutil

from espbench.monitor.components import HOST

# Guests are counted among the users already; stolen time is not the host's own work.
_NOT_BUSY = ("idle", "iowait", "guest", "guest_nice", "steal")


@dataclass(frozen=True, slots=True)
class HostCounters:
    """Counters since the host's start, and what is in use now."""

    busy_s: float
    stolen_s: float
    used_bytes: int
    disk: tuple[int, int] | None
    network: tuple[int, int]
    threads: int
    switches: int

    def row(self, before: "HostCounters", seconds: float) -> dict[str, Any]:
        """The rates since `before`. The kernel does not tell the host's kinds of switches apart."""
        disk = None
        if self.disk and before.disk:
            disk = [
                (now - then) / seconds for now, then in zip(self.disk, before.disk, strict=True)
            ]
        return {
            "component": HOST,
            "cpu_percent": 100 * max(0.0, self.busy_s - before.busy_s) / seconds,
            "rss_bytes": self.used_bytes,
            "read_bytes": disk[0] if disk else None,
            "written_bytes": disk[1] if disk else None,
            "net_sent_bytes": (self.network[0] - before.network[0]) / seconds,
            "net_received_bytes": (self.network[1] - before.network[1]) / seconds,
            "threads": self.threads,
            "context_switches": (self.switches - before.switches) / seconds,
            "steal_percent": 100 * max(0.0, self.stolen_s - before.stolen_s) / seconds,
        }


def read_host(threads: int) -> HostCounters:
    """The host's counters now; all networks count, the loopback one too."""
    times = psutil.cpu_times()
    memory = psutil.virtual_memory()
    disk = psutil.disk_io_counters()
    network = psutil.net_io_counters()
    parts = times._asdict()
    return HostCounters(
        busy_s=sum(value for name, value in parts.items() if name not in _NOT_BUSY),
        stolen_s=parts.get("steal", 0.0),
        used_bytes=memory.total - memory.available,
        disk=(disk.read_bytes, disk.write_bytes) if disk else None,
        network=(network.bytes_sent, network.bytes_recv) if network else (0, 0),
        threads=threads,
        switches=psutil.cpu_stats().ctx_switches,
    )
