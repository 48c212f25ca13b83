"""The one table at the end of a comparison: a row per figure, a column per profile."""

from typing import Any

from rich.console import Console
from rich.table import Table

from espbench.databases.figures import FIGURES, query_figures

_LEAST_WIDTH = 110


def print_comparison(console: Console, document: dict[str, Any]) -> None:
    """Print it; profiles that were not measured say why below."""
    profiles = document["profiles"]
    work = document["work"]
    table = Table(
        title=f"scale {document['scale']}, {work['rate']:g} updates/s for {work['duration_s']:g} s",
        box=None,
        padding=(0, 1),
    )
    table.add_column("", no_wrap=True)
    for profile in profiles:
        table.add_column(profile["name"], justify="right", no_wrap=True)
    table.add_row("server", *(_server(profile) for profile in profiles))
    for figure in FIGURES:
        title = f"{figure.title} ({figure.unit})"
        table.add_row(title, *(figure.text(profile) for profile in profiles))
    for title, cells in query_figures(profiles):
        table.add_row(title, *cells)
    Console(file=console.file, width=max(console.width, _LEAST_WIDTH)).print(table)


def remarks(document: dict[str, Any]) -> list[str]:
    """What a reader of the table must know, one line each."""
    lines = []
    for profile in document["profiles"]:
        name = profile["name"]
        if profile["state"] != "done":
            lines.append(f"{name}: {profile['state']}: {profile['error'] or 'not finished'}")
        writes, search = profile.get("writes") or {}, profile.get("search") or {}
        if writes and not writes["sustained"]:
            lines.append(f"{name}: did not sustain {writes['asked_rate']:g} updates/s")
        if writes and writes["stamped"] != writes["records"]:
            lines.append(
                f"{name}: {writes['records']} records were written, {writes['stamped']} are stamped"
            )
        if search.get("limited"):
            lines.append(f"{name}: the search's bound was reached, not the database's")
    return lines


def _server(profile: dict[str, Any]) -> str:
    server = profile.get("server")
    return f"{server['product']} {server['version'].split('-')[0]}" if server else profile["state"]
