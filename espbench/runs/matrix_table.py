"""What the cells of a matrix say together: median and spread over the repetitions."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from espbench.runs.matrix_plan import CONFIGURED

AXES = ("query", "rate", "engine", "database", "profile")
FIGURES = ("p50_ms", "p90_ms", "p99_ms", "achieved_rate")
# Repetitions that lie further apart than this say little together.
LARGE_SPREAD = 0.20
_LEAST_WIDTH = 140


def result_of(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """What a matrix keeps of a cell's verdict; latencies after warm-up."""
    latency = verdict["latency_ms_after_warmup"] or {}
    return {
        "correctness": verdict["correctness"],
        "load_valid": verdict["load"]["valid"],
        "sustainability": verdict["sustainability"]["verdict"],
        "p50_ms": latency.get("p50"),
        "p90_ms": latency.get("p90"),
        "p99_ms": latency.get("p99"),
        "achieved_rate": verdict["load"]["achieved_rate"],
    }


def summarize(cells: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per group of repetitions, in the order of the axes, whatever order they ran in."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for cell in cells:
        groups.setdefault(tuple(cell[axis] for axis in AXES), []).append(cell)
    return [_row(key, groups[key]) for key in sorted(groups)]


def _row(key: tuple[Any, ...], cells: list[Mapping[str, Any]]) -> dict[str, Any]:
    ordered = sorted(cells, key=lambda cell: int(cell["repetition"]))
    results = [cell["result"] for cell in ordered if cell["state"] == "finished"]
    row: dict[str, Any] = dict(zip(AXES, key, strict=True))
    row |= {"repetitions": len(cells), "finished": len(results)}
    row["correct"] = sum(result["correctness"] == "correct" for result in results)
    row["valid"] = sum(result["load_valid"] is True for result in results)
    row["sustained"] = sum(result["sustainability"] == "sustained" for result in results)
    for figure in FIGURES:
        row[figure] = spread([result[figure] for result in results])
    return row


def spread(values: Iterable[float | None]) -> dict[str, Any] | None:
    """Median, least, greatest, and how far apart these are by the median's measure."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    middle, least, greatest = median(known), min(known), max(known)
    relative = None
    if len(known) > 1:
        relative = (greatest - least) / middle if middle else None
    return {"median": middle, "min": least, "max": greatest, "spread": relative}


def warnings(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What must be known before the table is believed, a line each."""
    lines = []
    for row in rows:
        name = f"{row['query']} at {row['rate']:g}/s"
        name += "".join(
            f", {row[axis]}"
            for axis in ("engine", "database", "profile")
            if row[axis] not in {CONFIGURED, "constant", "auto"}
        )
        if row["finished"] < row["repetitions"]:
            lines.append(f"{name}: {row['finished']} of {row['repetitions']} repetitions finished")
        p90 = row["p90_ms"]
        if p90 and p90["spread"] is not None and p90["spread"] > LARGE_SPREAD:
            lines.append(
                f"{name}: p90 of the repetitions lies {100 * p90['spread']:.0f} % apart "
                f"({p90['min']:,.0f}-{p90['max']:,.0f} ms); repeat more often, or calm the machine"
            )
    return lines


def print_matrix(console: Console, rows: list[dict[str, Any]]) -> None:
    """The table of a matrix; an axis with one value takes no column."""
    varied = [axis for axis in AXES[2:] if len({row[axis] for row in rows}) > 1]
    table = Table(
        title="latency in ms after warm-up: median of the repetitions (least-greatest)",
        box=None,
        padding=(0, 1),
    )
    for name in ("query", "rate/s", *varied):
        table.add_column(name, no_wrap=True, justify="right" if name == "rate/s" else "left")
    for name in ("runs", "correct", "valid", "sustained", "p50", "p90", "spread", "p99"):
        table.add_column(name, no_wrap=True, justify="right")
    table.add_column("achieved/s", no_wrap=True, justify="right")
    for row in rows:
        table.add_row(*_cells(row, varied))
    Console(file=console.file, width=max(console.width, _LEAST_WIDTH)).print(table)


def _cells(row: Mapping[str, Any], varied: list[str]) -> list[str]:
    done = row["finished"]
    p90 = row["p90_ms"]
    apart = "-" if not p90 or p90["spread"] is None else f"{100 * p90['spread']:.0f} %"
    return [
        str(row["query"]),
        f"{row['rate']:,.0f}" if row["rate"] >= 1 else f"{row['rate']:g}",
        *(str(row[axis]) for axis in varied),
        f"{done}/{row['repetitions']}",
        *(f"{row[name]}/{done}" for name in ("correct", "valid", "sustained")),
        _middle(row["p50_ms"]),
        _range(p90),
        apart,
        _middle(row["p99_ms"]),
        _middle(row["achieved_rate"]),
    ]


def _middle(figure: Mapping[str, Any] | None) -> str:
    return f"{figure['median']:,.0f}" if figure else "-"


def _range(figure: Mapping[str, Any] | None) -> str:
    if not figure:
        return "-"
    return f"{figure['median']:,.0f} ({figure['min']:,.0f}-{figure['max']:,.0f})"
