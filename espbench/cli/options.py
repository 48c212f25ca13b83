"""Options that mean the same thing have the same name and the same help everywhere."""

import math
from pathlib import Path
from typing import Annotated

import typer

from espbench.config import YEAR_S as YEAR_S  # noqa: PLC0414 - the longest lead is an option's bound
from espbench.errors import UsageError

# The year 2100: any later start is a slip, perhaps of microseconds given as milliseconds.
LATEST_MS = 4_102_444_800_000

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration file (default: espbench.yml where it exists)."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say only what went wrong.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Say more; add tracebacks to errors.")]

BootstrapServers = Annotated[
    str | None,
    typer.Option("--bootstrap-servers", help="Kafka's address (default: the embedded broker)."),
]
Prefix = Annotated[
    str | None, typer.Option("--prefix", help="First part of every topic's name (kafka.prefix).")
]
Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        help="Database URL without password, e.g. postgresql://user@host:5432/name; or an embedded "
        "one: postgresql (default), mariadb.",
    ),
]
Rate = Annotated[float | None, typer.Option("--rate", help="Records per second and stream.")]
Duration = Annotated[float | None, typer.Option("--duration", help="Seconds of sending.")]
Warmup = Annotated[float | None, typer.Option("--warmup", help="Seconds of warm-up.")]
Scale = Annotated[int | None, typer.Option("--scale", help="Scale factor of the business data.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of the generated data.")]
Partitions = Annotated[int | None, typer.Option("--partitions", help="Partitions of a topic.")]
Queries = Annotated[
    str | None,
    typer.Option("--queries", help="Queries by name or number, separated by commas: q0,q3."),
]
Query = Annotated[
    str, typer.Option("--query", "--queries", help="One query, by name or number: q3.")
]
Engine = Annotated[
    str | None,
    typer.Option("--engine", help="Execution mode: auto, micro-batch, real-time, available-now."),
]
Master = Annotated[str | None, typer.Option("--master", help="Spark's master URL.")]


def run_name(run: str) -> str:
    """A run's name that can be part of a topic's; `UsageError` for any other."""
    from espbench.kafka.registry import check_run

    return check_run(run)


def finite(option: typer.CallbackParam, number: float | None) -> float | None:
    """A number of seconds or milliseconds that comes to its end; `UsageError` for inf and nan."""
    if number is not None and not math.isfinite(number):
        raise UsageError(f"{option.opts[0]} {number:g} never ends", "use a finite number")
    return number


Run = Annotated[
    str,
    typer.Option(
        "--run",
        help="The <run> in the topics' names: <prefix>-<run>-1.",
        callback=run_name,
    ),
]
