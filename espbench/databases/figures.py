"""The figures of a comparison that people look at first: name, unit, where they stand."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a profile. `path` leads to it in the document, `more`: whether more is good.

    `divisor` turns the stored unit into the shown one.
    """

    title: str
    unit: str
    path: tuple[str, ...]
    more: bool = False
    digits: int = 1
    divisor: float = 1.0

    def of(self, profile: dict[str, Any]) -> float | None:
        """The figure of this profile; None where it was not measured."""
        found: Any = profile
        for key in self.path:
            if not isinstance(found, dict) or found.get(key) is None:
                return None
            found = found[key]
        if isinstance(found, dict):
            return sum(found.values()) / self.divisor
        return float(found) / self.divisor

    def text(self, profile: dict[str, Any]) -> str:
        """As people read it."""
        value = self.of(profile)
        return "-" if value is None else f"{value:,.{self.digits}f}"


_MB = 1e6
FIGURES = (
    Figure("load", "s", ("load", "seconds")),
    Figure("load", "rows/s", ("load", "rows_per_s"), more=True, digits=0),
    Figure("lookup, p50", "ms", ("lookup", "ms", "p50")),
    Figure("update of a batch, p50", "ms", ("writes", "update_ms", "p50"), digits=2),
    Figure("commit of a batch, p50", "ms", ("writes", "commit_ms", "p50"), digits=2),
    Figure("commit of a batch, p90", "ms", ("writes", "commit_ms", "p90"), digits=2),
    Figure("update latency, p90", "ms", ("writes", "update_latency_ms", "p90")),
    Figure("commit latency, p90", "ms", ("writes", "commit_latency_ms", "p90")),
    Figure("commit latency, p99", "ms", ("writes", "commit_latency_ms", "p99")),
    Figure(
        "highest sustained rate", "updates/s", ("search", "sustained_rate"), more=True, digits=0
    ),
    Figure("size on disk", "MB", ("size_bytes",), digits=0, divisor=_MB),
    Figure("log written by the load", "MB", ("load", "log_bytes"), digits=0, divisor=_MB),
    Figure("log written per update", "bytes", ("writes", "log_bytes_per_record"), digits=0),
    Figure("server's CPU, load", "s", ("load", "server_cpu_s"), digits=2),
    Figure("server's CPU, writes", "s", ("writes", "server_cpu_s"), digits=2),
)


def query_figures(documents: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Rows for the full queries, where they were run: title, and a cell per profile."""
    names = {entry["query"] for one in documents for entry in one.get("queries") or []}
    rows = []
    for name in sorted(names):
        found = [
            next((entry for entry in one.get("queries") or [] if entry["query"] == name), None)
            for one in documents
        ]
        rows.append((f"{name}: verdict", [_verdict(entry) for entry in found]))
        for title, key in (("latency", "latency_ms_after_warmup"), ("commit", "commit_latency_ms")):
            cells = [_p90(entry, key) for entry in found]
            if any(cell != "-" for cell in cells):
                rows.append((f"{name}: {title} p90 (ms)", cells))
    return rows


def _verdict(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "-"
    return f"{entry['correctness']}, {entry['sustainability']['verdict']}"


def _p90(entry: dict[str, Any] | None, key: str) -> str:
    value = ((entry or {}).get(key) or {}).get("p90")
    return "-" if value is None else f"{value:,.0f}"
