"""`espbench capture`: topics and tables of a run into a capture directory."""

import json as jsonlib
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from espbench import logs
from espbench.cli import context, options
from espbench.errors import ExitCode, InputError
from espbench.logs import LOGGER


def capture(
    run: options.Run,
    query: options.Query,
    out: Annotated[Path, typer.Option("--out", help="The capture directory, which is made.")],
    sender_report: Annotated[
        Path | None, typer.Option("--sender-report", help="What `espbench send --out` wrote.")
    ] = None,
    clocks: Annotated[
        Path | None,
        typer.Option("--clocks", help="What `espbench clocks --broker … --out` wrote."),
    ] = None,
    rate: options.Rate = None,
    duration: options.Duration = None,
    warmup: options.Warmup = None,
    guarantee: Annotated[
        str | None,
        typer.Option("--guarantee", help="What the system promises: at-least-once, exactly-once."),
    ] = None,
    freshness: Annotated[
        float | None,
        typer.Option("--freshness", help="Seconds until a change of the downtimes must be seen."),
    ] = None,
    prefix: options.Prefix = None,
    bootstrap_servers: options.BootstrapServers = None,
    db: options.Db = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Copy topics and tables of a query of a run into a directory that `espbench validate` judges.

    Reads what stands in the topics now; a topic that could not be read to its end is marked
    incomplete (exit code 5). What was asked of the sender is taken from its report, or from --rate
    and --duration; without both the load is not judged.

    Example: espbench capture --run trial-q3 --query q3 --out trial --sender-report sent.json
    """
    settings = context.begin(
        config,
        quiet=quiet,
        verbose=verbose,
        options={
            "load.rate": rate,
            "load.duration": duration,
            "load.warmup": warmup,
            "guarantee": guarantee,
            "spark.freshness": freshness,
            "kafka.prefix": prefix,
            "kafka.bootstrap_servers": bootstrap_servers,
            "database.url": db,
        },
    )
    from espbench.kafka.admin import KafkaAdmin
    from espbench.names import find_query
    from espbench.services import endpoints
    from validator.capture import CaptureOrder
    from validator.capture import capture as write_capture

    wanted = find_query(query)
    report = _report(sender_report)
    order = CaptureOrder(
        query=wanted,
        run=run,
        prefix=settings.kafka.prefix,
        guarantee=settings.guarantee,
        # The configured load says what would be sent by default, not what was sent here.
        rate=rate if rate is not None else _of_streams(report, "asked_rate"),
        duration=duration if duration is not None else _of_streams(report, "duration_s"),
        warmup=settings.load.warmup,
        sender_report=report,
        freshness=settings.spark.freshness,
        clocks=_clocks(clocks),
    )
    admin = KafkaAdmin(endpoints.bootstrap_servers(settings))
    with logs.progress("records captured") as progress, ExitStack() as stack:
        database = None
        if wanted.tables:
            from schema.registry import open_database

            database = stack.enter_context(open_database(endpoints.database_address(settings)))
        document = write_capture(admin, order, out, progress, database)
    for topic in document["topics"]:
        word = "complete" if topic["complete"] else "INCOMPLETE"
        LOGGER.info("%s: %s records, %s", topic["name"], f"{topic['records']:,}", word)
        for reason in topic["reasons"]:
            LOGGER.warning("%s: %s", topic["name"], reason)
    if json:
        context.print_json(document)
    if not all(topic["complete"] for topic in document["topics"]):
        context.finish(ExitCode.UNKNOWN)


def _report(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        report: Any = jsonlib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no sender's report: {error}", "name another file") from error
    if not isinstance(report, dict):
        raise InputError(f"{path} is no sender's report", "name what `espbench send --out` wrote")
    found: dict[str, Any] = report
    return found


def _clocks(path: Path | None) -> list[Any]:
    """The brokers' clocks: theirs alone stamp the records."""
    if path is None:
        return []
    try:
        document: Any = jsonlib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} tells no clocks: {error}", "name another file") from error
    brokers = document.get("brokers") if isinstance(document, dict) else None
    if not isinstance(brokers, list):
        raise InputError(f"{path} tells no clocks", "name what `espbench clocks --out` wrote")
    return brokers


def _of_streams(report: dict[str, Any] | None, name: str) -> float | None:
    """What the sender's report says of its first stream."""
    streams = (report or {}).get("streams")
    first = streams[0] if isinstance(streams, list) and streams else None
    value = first.get(name) if isinstance(first, dict) else None
    return float(value) if isinstance(value, int | float) else None
