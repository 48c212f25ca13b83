"""`espbench capture`: the topics of a run into a capture directory."""

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from espbench import logs
from espbench.cli import context, options
from espbench.errors import ExitCode, InputError
from espbench.logs import LOGGER


def capture(
    run: options.Run,
    query: Annotated[str, typer.Option("--query", help="The query, by name or number: q3.")],
    out: Annotated[Path, typer.Option("--out", help="The capture directory, which is made.")],
    sender_report: Annotated[
        Path | None, typer.Option("--sender-report", help="What `espbench send --out` wrote.")
    ] = None,
    rate: options.Rate = None,
    duration: options.Duration = None,
    warmup: options.Warmup = None,
    guarantee: Annotated[
        str | None,
        typer.Option("--guarantee", help="What the system promises: at-least-once, exactly-once."),
    ] = None,
    bootstrap_servers: options.BootstrapServers = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Copy the topics of a query of a run into a directory that `espbench validate` judges.

    Reads what stands in the topics now; a topic that could not be read to its end is marked
    incomplete (exit code 5). Example: espbench capture --run trial-q3 --query q3 --out trial
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
            "kafka.bootstrap_servers": bootstrap_servers,
        },
    )
    from espbench.kafka.admin import KafkaAdmin
    from espbench.names import find_query
    from espbench.services import endpoints
    from validator.capture import CaptureOrder
    from validator.capture import capture as write_capture

    order = CaptureOrder(
        query=find_query(query),
        run=run,
        prefix=settings.kafka.prefix,
        guarantee=settings.guarantee,
        rate=settings.load.rate,
        duration=settings.load.duration,
        warmup=settings.load.warmup,
        sender_report=_report(sender_report),
    )
    admin = KafkaAdmin(endpoints.bootstrap_servers(settings))
    with logs.progress("records captured") as progress:
        document = write_capture(admin, order, out, progress)
    for topic in document["topics"]:
        word = "complete" if topic["complete"] else "INCOMPLETE"
        LOGGER.info("%s: %s records, %s", topic["name"], f"{topic['records']:,}", word)
    if json:
        context.print_json(document)
    if not all(topic["complete"] for topic in document["topics"]):
        context.finish(ExitCode.UNKNOWN)


def _report(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        report: dict[str, Any] = jsonlib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no sender's report: {error}", "name another file") from error
    return report
