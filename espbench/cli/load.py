"""`espbench load`: create the tables, bulk-load, check, and time it; or reset them for a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from espbench import logs
from espbench.cli import context, options
from espbench.errors import MissingExtra, UsageError
from espbench.services.endpoints import database_address
from espbench.timestamps import now_ms

if TYPE_CHECKING:
    from schema.dataset import DataSet
    from schema.load import LoadReport
    from schema.reset import ResetReport


def load(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Directory of the data set (default: the configured one)."),
    ] = None,
    db: options.Db = None,
    scale: options.Scale = None,
    seed: options.Seed = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Only prepare the loaded tables for a run.")
    ] = False,
    start_ms: Annotated[
        int | None,
        typer.Option(
            "--start-ms",
            min=0,
            max=options.LATEST_MS,
            help="Announced start of the run in epoch ms (default: now).",
        ),
    ] = None,
    start_in: Annotated[
        float | None,
        typer.Option(
            "--start-in",
            min=0,
            max=options.YEAR_S,
            help="The same, in so many seconds from now.",
        ),
    ] = None,
    duration: options.Duration = None,
    force: Annotated[
        bool, typer.Option("--force", help="Load again even if this data set is loaded.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Drop tables of these names that we did not make.")
    ] = False,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Load a data set into the database, check it, and report rows per second.

    A data set that is loaded completely is not loaded again: only what a run changes is restored,
    and the downtimes of the workplaces are placed relative to the start of the next run, which
    --start-ms announces and which lasts --duration seconds. --reset does that alone.

    Examples: espbench load --data data/ --db postgresql://me@db.example:5432/bench

    espbench load --reset --start-ms 1767225600000 --duration 300
    """
    settings = context.begin(
        config,
        quiet=quiet,
        verbose=verbose,
        options={
            "data.directory": data,
            "data.scale": scale,
            "data.seed": seed,
            "database.url": db,
            "load.duration": duration,
        },
    )
    if start_ms is not None and start_in is not None:
        raise UsageError("--start-ms and --start-in both name the start", "give one of them")
    try:
        from datagen.locate import data_directory
        from espbench.datasets import data_set_in
        from schema.load import is_loaded
        from schema.load import load as load_tables
        from schema.registry import open_database
        from schema.reset import reset as reset_tables
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "databases") from error
    start = now_ms() + round(1_000 * (start_in or 0)) if start_ms is None else start_ms
    seconds = settings.load.duration
    with open_database(database_address(settings)) as database:
        if reset:
            _finish(_reset_document(reset_tables(database, start, seconds)), json=json)
            return
        directory = data_directory(settings)
        data_set = data_set_in(directory)
        _check_asked(data_set, directory, scale=scale, seed=seed)
        if not force and is_loaded(database, data_set):
            done = reset_tables(database, start, seconds, data_set.tables_sha256)
            _finish(_reset_document(done) | {"reused": True}, json=json)
            return
        total = sum(file.rows for file in data_set.tables.values())
        with logs.progress("rows loaded", total=total) as progress:
            report = load_tables(
                database,
                data_set,
                start_ms=start,
                duration_s=seconds,
                overwrite=overwrite,
                progress=progress,
            )
        _finish(_load_document(report, start, seconds), json=json)


def _check_asked(
    data_set: "DataSet", directory: Path, *, scale: int | None, seed: int | None
) -> None:
    """Refuse to load another data set than the one that the options describe."""
    for option, asked, found in (
        ("--scale", scale, data_set.scale),
        ("--seed", seed, data_set.seed),
    ):
        if asked not in {None, found}:
            raise UsageError(
                f"{option} {asked} is not that of the data set in {directory}, {found}",
                f"drop {option}, or name another --data",
            )


def _reset_document(report: "ResetReport") -> dict[str, Any]:
    return {
        "loaded": False,
        "start_ms": report.start_ms,
        "duration_s": report.duration_s,
        "stamps_restored": report.stamps_restored,
        "seconds": round(report.seconds, 3),
    }


def _load_document(report: "LoadReport", start_ms: int, duration_s: float) -> dict[str, Any]:
    return {
        "loaded": True,
        "reused": False,
        "start_ms": start_ms,
        "duration_s": duration_s,
        "rows": report.rows,
        "seconds": round(report.seconds, 3),
        "rows_per_s": round(report.rows / report.seconds),
        "tables": [
            {
                "table": name,
                "rows": table.rows,
                "seconds": round(table.seconds, 3),
                "rows_per_s": round(table.rows_per_s),
                "keys_s": round(report.keys.get(name, 0.0), 3),
            }
            for name, table in report.tables.items()
        ],
        "steps": {name: round(seconds, 3) for name, seconds in report.steps.items()},
    }


def _finish(document: dict[str, Any], *, json: bool) -> None:
    if json:
        context.print_json(document)
        return
    if not document["loaded"]:
        restored = "stamps restored, " if document["stamps_restored"] else ""
        again = "the data set is loaded already; " if document.get("reused") else ""
        logs.LOGGER.info(
            "%sreset in %.1f s: %sdowntimes placed from %d ms for %g s",
            again,
            document["seconds"],
            restored,
            document["start_ms"],
            document["duration_s"],
        )
        return
    for row in document["tables"]:
        logs.LOGGER.info(
            "%-22s %10s rows %7.2f s %12s rows/s",
            row["table"],
            f"{row['rows']:,}",
            row["seconds"],
            f"{row['rows_per_s']:,}",
        )
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in document["steps"].items())
    logs.LOGGER.info(
        "%s rows in %.1f s (%s rows/s); of this %s",
        f"{document['rows']:,}",
        document["seconds"],
        f"{document['rows_per_s']:,}",
        steps,
    )
