"""Latency of queries 1 to 5 at 1,000 and 10,000/s, and the highest rate that each sustains.

Each cell is an `espbench run` of one query by itself, with embedded services on this machine,
judged by the validator. What was measured is kept in `--store`, a line of JSON a run: called again,
cells that are there already are not run again, so the work can be done in pieces.

    python benchmarks/queries.py latency --duration 300 --store latency.jsonl
    python benchmarks/queries.py highest --store highest.jsonl [--only q3] [--start 50000]
    python benchmarks/queries.py show --store latency.jsonl
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espbench.reports.published import published

RATES = (1_000, 10_000)
# What is asked when looking for the highest rate; each step about half as much again.
LADDER = (10_000, 20_000, 30_000, 40_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000)
# What "sustained" asks for: all of three runs.
REPETITIONS = 3
# Start and end of every production order line; a little fewer than there are.
LINES_PER_SCALE = 590_000
# The published runs, whose production times ended before this at 10,000/s.
PUBLISHED_S = 300.0


@dataclass(frozen=True)
class Row:
    """A query in one mode, and the p90 after warm-up that is wanted of it at each of `RATES`."""

    label: str
    query: str
    name: str
    engine: str
    wanted_ms: tuple[int, int]


UPDATES = Row("1, updates", "q1", "check-sensor-status", "real-time", (35, 40))
ROWS = (
    UPDATES,
    Row("1, final", "q1", "check-sensor-status", "micro-batch", (400, 500)),
    Row("2", "q2", "determine-outliers", "real-time", (400, 800)),
    Row("3", "q3", "identify-errors", "real-time", (5, 8)),
    Row("4", "q4", "check-machine-power", "real-time", (8, 15)),
    Row("5", "q5", "persist-processing-times", "real-time", (250, 400)),
)


class Store:
    """What was measured so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        self.cells: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]

    def of(self, row: Row, rate: int, duration: float) -> list[dict[str, Any]]:
        """The runs of one cell."""
        wanted = {"row": row.label, "rate": rate, "duration": duration}
        return [cell for cell in self.cells if wanted.items() <= cell.items()]

    def add(self, cell: dict[str, Any]) -> None:
        """Keep a run."""
        self.cells.append(cell)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(cell) + "\n")


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("latency", "highest", "show"))
    parser.add_argument("--store", type=Path, required=True, help="what was measured, kept")
    parser.add_argument(
        "--duration", type=float, default=70, help="seconds of sending a run, 10 of them warm-up"
    )
    parser.add_argument("--only", default="", help="queries, with commas (default: all)")
    parser.add_argument("--rates", default=",".join(map(str, RATES)), help="with commas")
    parser.add_argument("--start", type=int, default=LADDER[0], help="highest: begin there")
    parser.add_argument(
        "--repetitions", type=int, default=REPETITIONS, help="highest: runs that must all hold"
    )
    parser.add_argument("--most", type=int, default=None, help="latency: so many runs at most")
    given = parser.parse_args()
    rows = [row for row in ROWS if not given.only or row.query in given.only.split(",")]
    store = Store(given.store)
    if given.what == "latency":
        rates = [int(rate) for rate in given.rates.split(",")]
        latency(store, rows, rates, given.duration, given.most)
    elif given.what == "highest":
        for row in rows:
            say(highest(store, row, given.start, given.duration, given.repetitions))
    say(tables(store.cells))


def latency(
    store: Store, rows: Iterable[Row], rates: list[int], duration: float, most: int | None
) -> None:
    """One run of every cell that has none yet."""
    done = 0
    for row in rows:
        for rate in rates:
            if not store.of(row, rate, duration) and (most is None or done < most):
                store.add(run(row, rate, duration))
                done += 1


def highest(store: Store, row: Row, start: int, duration: float, repetitions: int) -> str:
    """Climb until a rate fails, then try the one below it as often as it takes."""
    rates = [rate for rate in LADDER if rate >= start]
    passed: list[int] = []
    failed: int | None = None
    for rate in rates:
        if not attempts(store, row, rate, duration, 1):
            failed = rate
            break
        passed.append(rate)
    while passed and not attempts(store, row, passed[-1], duration, repetitions):
        failed = passed.pop()
    best = f"{passed[-1]:,}/s" if passed else f"less than {rates[0]:,}/s"
    times = f"in {repetitions} of {repetitions}"
    return f"query {row.label}: {best} {times}, {f'{failed:,}/s' if failed else 'nothing'} not"


def attempts(store: Store, row: Row, rate: int, duration: float, times: int) -> bool:
    """Whether so many runs are all correct, valid and sustained; those kept count."""
    while len(cells := store.of(row, rate, duration)) < times:
        if not all(map(holds, cells)):
            break
        store.add(run(row, rate, duration))
    return all(map(holds, cells))


def holds(cell: dict[str, Any]) -> bool:
    """Whether a run kept up, rightly."""
    return bool(
        cell["correctness"] == "correct" and cell["valid"] and cell["sustained"] == "sustained"
    )


def run(row: Row, rate: int, duration: float) -> dict[str, Any]:
    """One run of one query, and what is kept of it."""
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, "-m", "espbench", "run", "--queries", row.query]
        command += ["--engine", row.engine, "--rate", str(rate), "--duration", str(duration)]
        command += ["--out", results, "--json", "--quiet"]
        if row.query == "q5" and duration < PUBLISHED_S:
            # Production times do not repeat, and a rate must last.
            command += ["--scale", str(max(3, math.ceil(rate * duration / LINES_PER_SCALE)))]
        environment = {**os.environ, "ESPBENCH_KEEP_CAPTURES": "false"}
        ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    try:
        (verdict,) = json.loads(ran.stdout)["queries"]
    except (ValueError, KeyError) as error:
        raise SystemExit(f"{' '.join(command)} ended with {ran.returncode}") from error
    return kept(row, rate, duration, verdict)


def kept(row: Row, rate: int, duration: float, verdict: dict[str, Any]) -> dict[str, Any]:
    """The figures of a verdict. Query 5 is judged by when others can see the row: the commit."""
    kind = "commit_latency_ms" if verdict.get("commit_latency_ms") else "latency_ms"
    every, warm = verdict[kind] or {}, verdict[f"{kind}_after_warmup"] or {}
    cell = {
        "row": row.label,
        "rate": rate,
        "duration": duration,
        "correctness": verdict["correctness"],
        "valid": verdict["load"]["valid"],
        "achieved": verdict["load"]["achieved_rate"],
        "sustained": verdict["sustainability"]["verdict"],
        "reasons": [*verdict["load"]["reasons"], *verdict["sustainability"]["reasons"]],
        "input": verdict["counts"]["input"],
        "n": warm.get("n"),
        "all": {name: every.get(name) for name in ("p50", "p90", "p99")},
        "warm": {name: warm.get(name) for name in ("p50", "p90", "p99")},
    }
    figures = ", ".join(f"{name} {shown(value)}" for name, value in cell["warm"].items())
    word = "keeps up" if holds(cell) else f"does not: {'; '.join(cell['reasons'])}"
    say(f"query {row.label} at {rate:,}/s for {duration:g} s: {figures} ms after warm-up; {word}")
    return cell


def tables(cells: list[dict[str, Any]]) -> str:
    """Two tables in Markdown: beside what is wanted, and beside what was published."""
    lines = ["", "| query | rate/s | s | p50 | p90 | p99 | wanted p90 | samples | verdict |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    beside = ["", "| query | rate/s | s | ours, all | published best | Spark 2.4 |"]
    beside.append("|---|---|---|---|---|---|")
    for row in ROWS:
        own = [each for each in cells if each["row"] == row.label]
        for cell in sorted(own, key=lambda each: (each["rate"], each["duration"])):
            rate, first = cell["rate"], f"{row.label} | {cell['rate']:,} | {cell['duration']:g}"
            warm = " | ".join(shown(cell["warm"][name]) for name in ("p50", "p90", "p99"))
            wanted = str(row.wanted_ms[RATES.index(rate)]) if rate in RATES else "-"
            verdict = f"{cell['correctness']}, {cell['sustained']}"
            verdict += "" if cell["valid"] else ", load invalid"
            lines.append(f"| {first} | {warm} | {wanted} | {cell['n']:,} | {verdict} |")
            if rate in RATES:
                theirs = [
                    each
                    for each in published()
                    # Nobody published updates of query 1.
                    if (each.query, each.rate) == (row.name, rate) and row is not UPDATES
                ]
                beside.append(f"| {first} | {shown(cell['all']['p90'])} | {best_of(theirs)} |")
    return "\n".join([*lines, *beside])


def best_of(theirs: list[Any]) -> str:
    """The fastest published system whose answers were right, and Spark; medians of p90."""
    if not theirs:
        return "none | -"
    right = [each for each in theirs if each.correct_runs == each.runs]
    best = min(right, key=lambda each: float(each.median_ms), default=None)
    spark = next((each for each in theirs if each.system.startswith("Spark")), None)
    first = f"{shown(best.median_ms)} ({best.system})" if best else "none was right"
    second = "-" if spark is None else shown(spark.median_ms)
    wrong = spark is not None and spark.correct_runs < spark.runs
    return f"{first} | {second}{' (wrong)' if wrong else ''}"


def shown(value: float | None) -> str:
    """A figure for people; the broker stamps whole milliseconds."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1 else "< 1"


def say(line: str) -> None:
    """Print at once: this takes long."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
