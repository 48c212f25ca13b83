"""`espbench report`: what people look at after a run."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from espbench.cli import context, options


def report(
    run: Annotated[
        str, typer.Argument(help="The run: its id, the beginning of one, `last`, or its path.")
    ] = "last",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The page (default: report.html of the run); junit.xml and summary.md stand "
            "beside it.",
        ),
    ] = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write report.html (one file, no network), junit.xml and summary.md of a run.

    Works for interrupted runs too, and says what is missing. With --json the report's data is
    printed as well. Example: espbench report last --out report.html
    """
    from espbench.reports.write import write_reports
    from espbench.runs.store import check_whole, find_run

    settings = context.begin(config, quiet=quiet, verbose=verbose)
    found, page = write_reports(check_whole(find_run(settings.results_dir, run)), out)
    if json:
        context.print_json(found)
    elif not quiet:
        sys.stdout.write(f"{found['verdict']['word']}: {found['verdict']['text']}\n{page}\n")
