"""`espbench datagen`: business data, production times and sensor streams into a directory."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from espbench import logs
from espbench.cli import context, options

if TYPE_CHECKING:
    from datagen.generate import Outcome

# What two cores make, for the estimate (benchmarks/data.py); work shorter than this needs none.
_ROWS_PER_S = 700_000
_LONG_S = 2.0

OutDirectory = Annotated[
    Path | None,
    typer.Option("--out", help="Directory of the data set (default: one named by its content)."),
]
SensorRows = Annotated[
    int | None,
    typer.Option(
        "--sensor-rows",
        help="Rows of each sensor stream (default: 600,011; a real file: all of it).",
    ),
]
Downtimes = Annotated[
    str | None,
    typer.Option(
        "--downtimes",
        help="run: machines 1 and 2 go down and up during the run; 2021: never and always.",
    ),
]
RealSensor = Annotated[
    Path | None,
    typer.Option(help="A real DEBS 2012 file for this stream, plain or gzipped."),
]


def datagen(
    out: OutDirectory = None,
    scale: options.Scale = None,
    seed: options.Seed = None,
    sensor_rows: SensorRows = None,
    downtimes: Downtimes = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes (default: one per core).")
    ] = None,
    locale: Annotated[
        str, typer.Option("--locale", help="Where names and places come from, as in de_DE.")
    ] = "en_US",
    sensor_1: RealSensor = None,
    sensor_2: RealSensor = None,
    force: Annotated[
        bool, typer.Option("--force", help="Generate again, over what is in the directory.")
    ] = False,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Generate business data, production times and both sensor streams.

    Writes one CSV file per table (tab separated, no header), production_times.csv, sensor-1.csv,
    sensor-2.csv and manifest.json with row counts and SHA-256 sums. The same parameters give the
    same bytes on every machine; a data set that is there already is found, not made again.

    Example: espbench datagen --scale 3 --seed 2021 --out data/
    """
    settings = context.begin(
        config,
        quiet=quiet,
        verbose=verbose,
        options={
            "data.directory": out,
            "data.scale": scale,
            "data.seed": seed,
            "data.sensor_rows": sensor_rows,
            "data.downtimes": downtimes,
        },
    )
    from datagen import debs, plan
    from datagen.generate import generate
    from datagen.locate import data_directory, parameters_of

    real = {stream: path for stream, path in ((1, sensor_1), (2, sensor_2)) if path}
    changes: dict[str, Any] = {"locale": locale}
    changes |= {f"sensor_{stream}": debs.fingerprint(path) for stream, path in real.items()}
    if real:
        changes["real_rows"] = sensor_rows
    parameters = parameters_of(settings).model_copy(update=changes)
    directory = data_directory(settings, parameters)
    with logs.progress("rows generated", total=plan.expected_rows(parameters)) as progress:
        outcome = generate(
            parameters,
            directory,
            workers_count=workers,
            real_sensors=real,
            force=force,
            progress=progress,
            announce=_announce,
        )
    if json:
        context.print_json(_document(outcome))
    else:
        _tell(outcome)


def _announce(rows: int, size: int) -> None:
    """The estimate before long work."""
    seconds = rows / _ROWS_PER_S
    if seconds > _LONG_S:
        logs.LOGGER.info(
            "about %s rows, %.1f GB, roughly %s to make",
            f"{rows:,}",
            size / 1e9,
            f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min",
        )


def _tell(outcome: "Outcome") -> None:
    if outcome.reused:
        logs.LOGGER.info("the data set is there already: %s", outcome.directory)
        return
    logs.LOGGER.info(
        "%s rows in %.1f s (%s rows/s): %s",
        f"{outcome.rows:,}",
        outcome.seconds,
        f"{outcome.rows / outcome.seconds:,.0f}",
        outcome.directory,
    )


def _document(outcome: "Outcome") -> dict[str, Any]:
    manifest = outcome.manifest
    return {
        "directory": str(outcome.directory),
        "data_sha256": manifest.data_sha256,
        "reused": outcome.reused,
        "parameters": manifest.parameters.model_dump(mode="json"),
        "rows": outcome.rows,
        "seconds": round(outcome.seconds, 3),
        "rows_per_s": round(outcome.rows / outcome.seconds) if outcome.seconds else None,
        "files": [entry.model_dump(mode="json") for entry in manifest.files],
    }
