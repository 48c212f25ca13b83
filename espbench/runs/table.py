"""The one table that says it all at the end of a run."""

from typing import Any

from rich.table import Table

_COLOURS = {"correct": "green", "incorrect": "red", "unknown": "yellow"}


def result_table(verdicts: list[dict[str, Any]]) -> Table:
    """Per query: correctness, counts, latency percentiles, rate, sustained or not."""
    table = Table(title="latencies in ms after warm-up, from the broker's time stamps")
    for name in ("query", "correctness", "load"):
        table.add_column(name)
    for name in ("input", "expected", "matched", "missing", "extra", "wrong"):
        table.add_column(name, justify="right")
    for name in ("p50", "p90", "p99", "rate/s"):
        table.add_column(name, justify="right")
    table.add_column("sustained")
    for verdict in verdicts:
        table.add_row(*_cells(verdict))
    return table


def _cells(verdict: dict[str, Any]) -> list[str]:
    counts = verdict["counts"]
    latency = verdict["latency_ms_after_warmup"] or {}
    colour = _COLOURS[verdict["correctness"]]
    kinds = ("input", "expected", "matched", "missing", "extra", "wrong")
    return [
        verdict["query"],
        f"[{colour}]{verdict['correctness']}[/]",
        {True: "valid", False: "invalid", None: "not judged"}[verdict["load"]["valid"]],
        *(f"{counts[kind]:,}" for kind in kinds),
        *(_milliseconds(latency.get(key)) for key in ("p50", "p90", "p99")),
        _milliseconds(verdict["load"]["achieved_rate"]),
        verdict["sustainability"]["verdict"],
    ]


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def reasons(verdicts: list[dict[str, Any]]) -> list[str]:
    """Why anything is not as it should be, one line each."""
    lines = []
    for verdict in verdicts:
        name = verdict["query"]
        for part in ("load", "sustainability"):
            lines += [f"{name}: {reason}" for reason in verdict[part]["reasons"]]
        for witness in verdict["witnesses"][:3]:
            place = f"{witness['topic']}[{witness['partition']}]@{witness['offset']}"
            lines.append(f"{name}: {witness['kind']} at {place}")
    return lines
