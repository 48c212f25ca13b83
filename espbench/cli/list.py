"""`espbench list`: the runs of the store."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from espbench import logs
from espbench.cli import context, options

Results = Annotated[
    Path | None, typer.Option("--out", help="Where the results are (default: results).")
]


def list_runs(
    out: Results = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """List the runs, the oldest first: state, when, queries, rate, verdict, p90, disk use.

    A directory that cannot be read is listed as such. Example: espbench list --json
    """
    from espbench.runs.listing import entries

    settings = context.begin(config, quiet=quiet, verbose=verbose, options={"results_dir": out})
    found = entries(settings.results_dir)
    if json:
        context.print_json({"results": str(settings.results_dir), "runs": found})
    elif found:
        _print(found)
    else:
        sys.stdout.write(f"no runs in {settings.results_dir}; make one with `espbench run`\n")


def _print(found: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from espbench.names import find_query
    from espbench.runs.listing import size_text

    table = Table(box=None, padding=(0, 1))
    for name in ("run", "state", "started (UTC)", "queries"):
        table.add_column(name, no_wrap=True)
    table.add_column("rate/s", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("p90 in ms", no_wrap=True)
    table.add_column("disk", justify="right", no_wrap=True)
    for one in found:
        size = size_text(one["bytes"])
        if one["state"] == "unreadable":
            table.add_row(one["run"], "[red]unreadable[/]", "", "", "", "", "", size)
            continue
        short = {name: find_query(name).short for name in one["queries"]}
        latencies = (
            f"{short[name]} {'-' if p90 is None else f'{p90:,.0f}'}"
            for name, p90 in one["p90_ms"].items()
        )
        table.add_row(
            one["run"],
            escape(one["state"]),
            escape(str(one["started"])[:19].replace("T", " ")),
            ",".join(short.values()) or "-",
            f"{one['rate']:,.0f}",
            one["verdict"] or "-",
            ", ".join(latencies),
            size,
        )
    # A cell that is cut short cannot be copied; better a line that the terminal folds.
    Console(file=logs.stdout.file, width=max(logs.stdout.width, 150)).print(table)
    for one in found:
        if one["state"] == "unreadable":
            sys.stdout.write(f"{one['run']}: {one['error']}\n")
