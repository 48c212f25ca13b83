"""The page of a comparison: one file of the reports' style, no network."""

from typing import Any

from espbench.databases.figures import FIGURES, Figure, query_figures
from espbench.databases.table import remarks
from espbench.reports.page import render

# What is drawn, and what it says; the table has all figures.
_DRAWN = {
    "load": "Until all tables were loaded and checked.",
    "lookup, p50": "Query 4's table, read over two new connections.",
    "commit of a batch, p50": "What the commit alone took: here durability is paid for.",
    "commit latency, p90": "From a record's due time until its commit was acknowledged.",
    "highest sustained rate": "The highest rate at which latency did not grow.",
    "size on disk": "Tables and keys after the load.",
    "log written per update": "WAL or redo log; batches share what is written per transaction.",
    "server's CPU, writes": "Processor time of the server for all updates at the asked rate.",
}
_WIDTH = 100


def page(document: dict[str, Any]) -> str:
    """The whole page; everything that came from outside is escaped."""
    profiles = document["profiles"]
    loads = [(each.get("load") or {}).get("tables", {}) for each in profiles]
    return render(
        "databases.html",
        {},
        document=document,
        remarks=remarks(document),
        drawn=[
            _bars(figure, profiles)
            for figure in FIGURES
            if figure.title in _DRAWN and figure.unit != "rows/s"
        ],
        rows=[
            *(
                (f"{figure.title} ({figure.unit})", [figure.text(each) for each in profiles])
                for figure in FIGURES
            ),
            *query_figures(profiles),
        ],
        loads=[
            (name, [one[name]["rows_per_s"] if name in one else None for one in loads])
            for name in dict.fromkeys(name for tables in loads for name in tables)
        ],
        lines=_lines,
    )


def _bars(figure: Figure, profiles: list[dict[str, Any]]) -> dict[str, Any]:
    """One figure, a bar per profile, the longest of them as wide as the chart."""
    values = [figure.of(each) for each in profiles]
    most = max((value for value in values if value is not None), default=0.0) or 1.0
    return {
        "title": f"{figure.title}, {figure.unit}",
        "text": f"{_DRAWN[figure.title]} {'More' if figure.more else 'Less'} is better.",
        "bars": [
            {
                "name": each["name"],
                "width": 0.0 if value is None else round(max(0.5, _WIDTH * value / most), 2),
                "text": figure.text(each),
            }
            for each, value in zip(profiles, values, strict=True)
        ],
    }


def _lines(mapping: dict[str, Any] | None) -> str:
    return "\n".join(f"{name} = {value}" for name, value in (mapping or {}).items()) or "none"
