"""The results that were published in 2021, to stand beside ours."""

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

SOURCE = "Hesse et al., ESPBench, 2021"
# What is known of how they came about; nothing is added to it.
CONDITIONS = (
    "Five-minute runs of January 2020, three of each, of queries written with Apache Beam; the "
    "published files do not name the hardware. Hardware, length, Beam's layer and the data differ "
    "from ours: read orders of magnitude, not ratios."
)


@dataclass(frozen=True, slots=True)
class Published:
    """One system at one rate in one query: p90 over all outputs, lowest, median, highest run."""

    system: str
    rate: int
    query: str
    runs: int
    correct_runs: int
    lowest_ms: float
    median_ms: float
    highest_ms: float


def published() -> list[Published]:
    """All of them, by rate and query."""
    text = files("espbench.reports").joinpath("published_2021.csv").read_text(encoding="utf-8")
    return [
        Published(
            row["system"],
            int(row["rate"]),
            row["query"],
            int(row["runs"]),
            int(row["correct_runs"]),
            float(row["p90_lowest_ms"]),
            float(row["p90_median_ms"]),
            float(row["p90_highest_ms"]),
        )
        for row in csv.DictReader(text.splitlines())
    ]


def beside(queries: list[str], rate: float | None) -> list[dict[str, Any]]:
    """The published rows for these queries, at our rate, or at both where ours is another."""
    rows = [each for each in published() if each.query in queries]
    same = [each for each in rows if each.rate == rate]
    return [
        {
            "system": each.system,
            "rate": each.rate,
            "query": each.query,
            "runs": each.runs,
            "correct_runs": each.correct_runs,
            "lowest_ms": each.lowest_ms,
            "median_ms": each.median_ms,
            "highest_ms": each.highest_ms,
        }
        for each in same or rows
    ]
