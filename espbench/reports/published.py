"""The results that were published in 2021, to stand beside ours."""

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from espbench.reports.reading import at, gibibytes

SOURCE = "Hesse et al., ESPBench: The Enterprise Stream Processing Benchmark, ICPE 2021"
# What is known of how they came about, from its authors' repository
# (docs/ESPBenchSetupAndExecutionDetailed.md and tools/configuration); nothing is added to it.
CONDITIONS = (
    "Five-minute runs of January 2020, three of each, of queries written with Apache Beam, on "
    "eight virtual machines with Ubuntu 18.04: three for the stream processor, three for Kafka "
    "2.3.0, one for PostgreSQL 9.6, one to start it all; a parallelism of 1, executors of 50 GB "
    "for Spark, heaps of 4 GB for Flink. Processors and networks are shown there in pictures only."
)
DIFFERENCES = (
    "Machines, length, Beam's layer and the data differ: read orders of magnitude, not ratios."
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


def ours(run: dict[str, Any]) -> str:
    """The machines of our run, for the same place."""
    machine, config = at(run, "machine"), at(run, "config")
    text = f"on {at(machine, 'cores')} cores of {at(machine, 'processor')} with "
    text += gibibytes(at(machine, "memory_bytes"))
    url, master = at(config, "database", "url"), str(at(config, "spark", "master") or "")
    elsewhere = [
        name
        for name, is_elsewhere in (
            ("Kafka", at(config, "kafka", "bootstrap_servers") is not None),
            ("database", "://" in str(url or "")),
            ("Spark", not master.startswith("local")),
        )
        if is_elsewhere
    ]
    if elsewhere:
        return f"{text}; {' and '.join(elsewhere)} by address, perhaps on other machines"
    return f"{text}, which sender, Kafka, database and Spark shared"


def systems(rate: float | None) -> list[tuple[str, int]]:
    """Every published system with its rate, at our rate, or at both where ours is another."""
    found = dict.fromkeys((each.system, each.rate) for each in published())
    return [each for each in found if each[1] == rate] or list(found)


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
