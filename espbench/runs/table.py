"""The one table that says it all at the end of a run."""

from typing import Any

from rich.console import Console
from rich.table import Table

_COLOURS = {"correct": "green", "incorrect": "red", "unknown": "yellow"}
_LEAST_WIDTH = 132
_AMISS = {"missing", "extra", "wrong", "duplicate", "malformed"}
_KINDS = ("expected", "matched", "missing", "extra", "wrong")


def print_results(console: Console, verdicts: list[dict[str, Any]]) -> None:
    """Per query: correctness, counts, latency percentiles, rate, sustained or not."""
    table = Table(
        title="latency in ms after warm-up, by the broker's time stamps", box=None, padding=(0, 1)
    )
    for name in ("query", "correctness"):
        table.add_column(name, no_wrap=True)
    for name in (*_KINDS, "p50", "p90", "p99", "rate/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("load", "sustained"):
        table.add_column(name, no_wrap=True)
    for verdict in verdicts:
        table.add_row(*_cells(verdict))
    # A cell cut short would hide what the run was for; better a line that the terminal folds.
    Console(file=console.file, width=max(console.width, _LEAST_WIDTH)).print(table)


def _cells(verdict: dict[str, Any]) -> list[str]:
    counts = verdict["counts"]
    latency = verdict["latency_ms_after_warmup"] or {}
    colour = _COLOURS[verdict["correctness"]]
    sustained = {"sustained": "yes", "not sustained": "no"}
    return [
        verdict["query"],
        f"[{colour}]{verdict['correctness']}[/]",
        *(f"{counts[kind]:,}" for kind in _KINDS),
        *(_number(latency.get(key)) for key in ("p50", "p90", "p99")),
        _number(verdict["load"]["achieved_rate"]),
        {True: "valid", False: "invalid", None: "not judged"}[verdict["load"]["valid"]],
        sustained.get(verdict["sustainability"]["verdict"], "unknown"),
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def reasons(verdicts: list[dict[str, Any]]) -> list[str]:
    """Why anything is not as it should be, one line each."""
    lines = []
    for verdict in verdicts:
        name = verdict["query"]
        for part in ("load", "sustainability"):
            lines += [f"{name}: {reason}" for reason in verdict[part]["reasons"]]
        # Surplus updates and a changed order are counted; only these kinds are anything amiss.
        amiss = [each for each in verdict["witnesses"] if each["kind"] in _AMISS]
        for witness in amiss[:3]:
            place = f"{witness['topic']}[{witness['partition']}]@{witness['offset']}"
            lines.append(f"{name}: {witness['kind']} at {place}")
    return lines
