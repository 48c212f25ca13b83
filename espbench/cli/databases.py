"""`espbench databases`: the same work on several databases or settings, side by side."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from espbench import logs
from espbench.cli import context, options
from espbench.errors import MissingExtra, UsageError

# A comparison is short unless it is asked for more.
_SCALE, _DURATION_S = 1, 10.0


def databases(
    profiles: Annotated[
        Path | None,
        typer.Option(
            "--profiles",
            help="YAML file of the profiles (default: PostgreSQL, PostgreSQL without synchronous "
            "commit, MariaDB).",
        ),
    ] = None,
    rate: options.Rate = None,
    duration: options.Duration = None,
    scale: options.Scale = None,
    seed: options.Seed = None,
    batch_ms: Annotated[
        float,
        typer.Option(
            "--batch-ms",
            min=0,
            callback=options.finite,
            help="Milliseconds between two batches.",
        ),
    ] = 100.0,
    step_s: Annotated[
        float,
        typer.Option(
            "--step-s",
            min=0,
            callback=options.finite,
            help="Seconds of a step of the search for the highest rate (0: none).",
        ),
    ] = 3.0,
    with_queries: Annotated[
        bool,
        typer.Option("--with-queries", help="Also run queries 4 and 5 in full on every profile."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Directory of the results (default: results).")
    ] = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Do the same work on several databases, or on several settings of one, and compare.

    For every profile: load the data, read query 4's table as the query does, write query 5's stamps
    at --rate for --duration seconds, search the highest sustained rate; with sizes, log written,
    processor time, plans and all settings. The writes are query 5's own, driven without Spark;
    --with-queries adds the full queries. Results: results/databases-<id>/databases.html and .json.
    Defaults here: scale 1, 10 s. A database that a profile names by URL is loaded anew.

    Examples: espbench databases

    espbench databases --profiles profiles.yml --rate 5000 --duration 30 --with-queries
    """
    settings = context.begin(
        config,
        quiet=quiet,
        verbose=verbose,
        options={
            "load.rate": rate,
            "load.duration": duration,
            "data.scale": scale,
            "data.seed": seed,
            "results_dir": out,
        },
    )
    if "scale" not in settings.data.model_fields_set:
        settings = settings.model_copy(
            update={"data": settings.data.model_copy(update={"scale": _SCALE})}
        )
    try:
        from espbench.databases.compare import Comparison
        from espbench.databases.profiles import read_profiles
        from espbench.databases.table import print_comparison, remarks
        from espbench.databases.work import Work
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "databases") from error
    if 0 < step_s < 1:
        raise UsageError("--step-s is too short to tell a trend", "give 0, or 1 and more")
    asked = "duration" in settings.load.model_fields_set
    work = Work(
        rate=settings.load.rate,
        duration_s=settings.load.duration if asked else _DURATION_S,
        batch_s=batch_ms / 1_000,
        step_s=step_s,
        queries=with_queries,
    )
    comparison = Comparison(settings, read_profiles(profiles), work)
    code = comparison.run()
    if json:
        context.print_json(comparison.document)
    else:
        print_comparison(logs.stdout, comparison.document)
        for line in remarks(comparison.document):
            sys.stdout.write(f"{line}\n")
        sys.stdout.write(f"results: {comparison.root / 'databases.html'}\n")
    context.finish(code)
