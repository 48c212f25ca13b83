"""The live view in a terminal: a few lines that stay in their place; plain lines elsewhere."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from espbench.reports.sentences import NOTHING

_DASH = NOTHING


def headline(document: dict[str, Any]) -> str:
    """Run, time, step: `run … · running · 1:02 · identify-errors: send 12 s`."""
    parts = [f"run {document['run']}", document["state"], minutes(document["elapsed_s"])]
    step = document["step"]
    if step:
        name = f"{step['query']}: {step['name']}" if step["query"] else step["name"]
        parts.append(f"{name} {step['seconds']:.0f} s")
    elif document["query"] and not document["over"]:
        parts.append(document["query"])
    return " · ".join(parts)


def figures(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and figures of the query that is on; empty before anything was sent."""
    records, rates = document["records"], document["rate_per_s"]
    if records is None or not records["sent"]:
        return []
    sent = [rates[name] for name in sorted(rates) if name.endswith("_sent")]
    rate = " + ".join(_number(each) for each in sent)
    given = _number(records["answers"]) if "answers" in records else "in the table"
    latency = document["latency_ms"]
    quantiles = ", ".join(f"{key} {_number(latency[key])} ms" for key in ("p50", "p90", "max"))
    return [
        ("rate", f"asked {_number(rates['asked'])}/s, sent {rate or _DASH}/s"),
        ("records", f"sent {records['sent']:,}, answers {given}"),
        (
            "lag",
            f"at most {records['lag_at_most']:,} (answered: {records['answered_at_least']:,})",
        ),
        (
            "latency",
            f"{quantiles} so far (of {latency['n']:,} drawn answers)",
        ),
    ]


def plain(document: dict[str, Any]) -> str:
    """Everything on one line, for logs and pipes."""
    words = [headline(document)]
    words += [f"{name} {text}" for name, text in figures(document)]
    if document["components"]:
        words.append(
            ", ".join(
                f"{each['name']} {_number(each['cpu_percent'])} %"
                for each in document["components"]
            )
        )
    return " | ".join([*words, *document["notes"]])


def screen(document: dict[str, Any]) -> RenderableType:
    """What stands in the terminal."""
    now = Table.grid(padding=(0, 2))
    for name, text in figures(document):
        now.add_row(Text(name, style="dim"), Text(text))
    parts: list[RenderableType] = [Text(headline(document), style="bold"), now]
    if document["components"]:
        parts.append(_components(document["components"]))
    parts.append(_queries(document["queries"]))
    parts += [Text(note, style="yellow") for note in document["notes"]]
    return Group(*parts)


def minutes(seconds: float) -> str:
    """`1:02` for 62 seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _components(components: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("component")
    table.add_column("% of a core", justify="right")
    table.add_column("memory MB", justify="right")
    for each in components:
        memory = each["rss_bytes"]
        table.add_row(
            Text(str(each["name"])),
            _number(each["cpu_percent"]),
            _number(None if memory is None else memory / 1e6),
        )
    return table


def _queries(queries: list[dict[str, Any]]) -> Text:
    text = Text()
    for each in queries:
        words = [check["word"] for check in each["checks"]]
        p90 = each["p90_ms"]
        if words:
            shown = ", ".join(words) + (f", p90 {_number(p90)} ms" if p90 is not None else "")
        else:
            shown = _DASH
        text.append(f"{each['name']}: {shown}\n", style="" if words else "dim")
    text.rstrip()
    return text


def _number(value: float | None) -> str:
    if value is None:
        return _DASH
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:,.1f}"
