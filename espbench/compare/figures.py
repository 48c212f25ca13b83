"""What is compared: the figures of a query, and which way is worse."""

from dataclasses import dataclass
from typing import Any

from espbench.reports.reading import at, number


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a verdict. `sign` is 1 where more is worse, -1 where less is."""

    name: str
    title: str
    path: tuple[str, ...]
    unit: str = "ms"
    sign: int = 1
    # The quantile that it is of the latencies after warm-up, where it is one.
    quantile: float | None = None

    def of(self, verdict: dict[str, Any]) -> float | None:
        """Its value in a verdict; None where the sample did not carry it."""
        return number(at(verdict, *self.path))


def _after(name: str, quantile: float) -> Figure:
    return Figure(
        name, name.replace("_", "."), ("latency_ms_after_warmup", name), quantile=quantile
    )


FIGURES = (
    _after("p50", 0.5),
    _after("p90", 0.9),
    _after("p95", 0.95),
    _after("p99", 0.99),
    _after("p99_9", 0.999),
    Figure("max", "max", ("latency_ms_after_warmup", "max"), quantile=1.0),
    Figure("end_to_end_p90", "p90 from due", ("end_to_end_ms_after_warmup", "p90"), quantile=0.9),
    Figure("commit_p90", "p90 commit", ("commit_latency_ms", "p90"), quantile=0.9),
    Figure("rate", "sent/s", ("load", "achieved_rate"), unit="per s", sign=-1),
)
# A table of all would hide the ones that count.
SHOWN = ("p50", "p90", "p99", "max", "rate")


def figure(name: str) -> Figure | None:
    """The figure of this name; `p99.9` is `p99_9`."""
    wanted = name.strip().lower().replace(".", "_")
    return next((each for each in FIGURES if each.name == wanted), None)
