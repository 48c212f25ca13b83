"""A verdict for people: one table per query."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from validator.verdict import CORRECT, INCORRECT, Verdict

COLOURS = {CORRECT: "bold green", INCORRECT: "bold red"}
SHOWN_CHARACTERS = 100
NONE = "-"


def render(verdict: Verdict) -> RenderableType:
    """Everything that matters about one verdict, the outcome first."""
    document = verdict.document()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("query", Text(str(verdict.query)))
    colour = COLOURS.get(verdict.correctness, "bold yellow")
    table.add_row("correctness", Text(verdict.correctness, style=colour))
    for problem in verdict.problems:
        table.add_row("", Text(problem))
    table.add_row("counts", Text(_counts(document["counts"])))
    label = f" ({verdict.latency_label})" if verdict.latency_label else ""
    for title, key in (
        ("latency", "latency_ms"),
        ("  after warm-up", "latency_ms_after_warmup"),
        ("  end to end", "end_to_end_ms"),
        ("  commit", "commit_latency_ms"),
        ("  commit, after warm-up", "commit_latency_ms_after_warmup"),
    ):
        unknown_commit = key.startswith("commit") and document.get(key) is None
        if key in document and not unknown_commit:
            table.add_row(
                title, Text(_figures(document[key]) + (label if key == "latency_ms" else ""))
            )
    for mark in document["latency_marks"]:
        table.add_row("  clock", Text(mark, style="yellow"))
    table.add_row("load", Text(_load(document["load"])))
    table.add_row("sustainability", Text(_sustainability(document["sustainability"])))
    table.add_row("SLO", Text(_slo(document["slo"])))
    for note in verdict.notes:
        table.add_row("note", Text(note))
    table.add_row("validator", Text(f"{document['validator_s']:.1f} s"))
    parts: list[RenderableType] = [table]
    if verdict.witnesses:
        parts.append(_witnesses(document["witnesses"]))
    return Group(*parts)


def _counts(counts: dict[str, int]) -> str:
    always = ("input", "expected", "actual", "matched")
    return ", ".join(
        f"{count:,} {name.replace('_', ' ')}"
        for name, count in counts.items()
        if count or name in always
    )


def _figures(figures: dict[str, Any] | None) -> str:
    if figures is None:
        return "none: not stamped by LogAppendTime"
    if not figures["n"]:
        return "none: nothing matched"
    shown = [
        f"{name.replace('_', '.')} {_number(figures[name])}" for name in figures if name != "n"
    ]
    return f"{', '.join(shown)} ms, n {figures['n']:,}"


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:,.1f}".removesuffix(".0")


def _load(load: dict[str, Any]) -> str:
    valid = {True: "valid", False: "invalid", None: "not judged"}[load["valid"]]
    achieved, asked = _number(load["achieved_rate"]), _number(load["asked_rate"])
    lateness = load["lateness_ms"] or {}
    shown = f"{valid}: {achieved} records/s and stream, asked {asked}"
    shown += f", lateness p99 {_number(lateness.get('p99'))} ms"
    return "; ".join([shown, *load["reasons"]])


def _sustainability(found: dict[str, Any]) -> str:
    figures = (
        f"lag {_number(found['lag_slope_per_s'])}/s, "
        f"latency {_number(found['latency_slope_ms_per_s'])} ms/s, "
        f"drain {_number(found['drain_s'])} s"
    )
    return "; ".join([f"{found['verdict']} ({figures})", *found["reasons"]])


def _slo(slo: dict[str, Any]) -> str:
    met = {True: "met", False: "missed", None: "not judged"}[slo["met"]]
    figure = f"p{slo['percentile']} after warm-up is {_number(slo['figure_ms'])} ms"
    return f"{met}: {figure}, limit {_number(slo['limit_ms'])} ms"


def _witnesses(witnesses: list[dict[str, Any]]) -> Table:
    table = Table("witness", "topic", "partition", "offset", "expected", "actual", box=None)
    for found in witnesses:
        table.add_row(
            found["kind"],
            Text(found["topic"]),
            str(found["partition"]),
            str(found["offset"]),
            Text(_short(found["expected"])),
            Text(_short(found["actual"])),
        )
    return table


def _short(value: str | None) -> str:
    if value is None:
        return NONE
    flat = value.replace("\t", " ")
    return flat if len(flat) <= SHOWN_CHARACTERS else flat[:SHOWN_CHARACTERS] + "…"
