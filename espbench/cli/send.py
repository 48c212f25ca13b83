"""`espbench send`: replay streams at a rate or a load profile."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from espbench import logs, names
from espbench.cli import context, options
from espbench.config import MOST_PER_S, Settings
from espbench.errors import ExitCode, UsageError
from espbench.paths import make_dir
from espbench.services.endpoints import bootstrap_servers as broker_address

if TYPE_CHECKING:
    from sender.send import StreamRequest

_STREAMS = (1, 2, 3)


def send(
    run: options.Run,
    stream: Annotated[
        list[str],
        typer.Option(
            "--stream",
            metavar="N=FILE",
            help="A stream and its file; 1, 2: sensors, 3: production times. Several allowed.",
        ),
    ],
    rate: Annotated[
        list[str] | None,
        typer.Option(
            "--rate",
            metavar="[N=]RATE",
            help="Records per second and stream; N=RATE for one stream only. Several allowed.",
        ),
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            "--profile",
            metavar="[N=]NAME[:KEY=VALUE,…]",
            help="Load profile (default: load.profile, else constant): constant, increasing, "
            "decreasing, cosine, random-walk, steps, burst-at-start, periodic-bursts, csv. "
            "N=… for one stream only.",
        ),
    ] = None,
    duration: options.Duration = None,
    start_ms: Annotated[
        int | None,
        typer.Option(
            "--start-ms",
            max=options.LATEST_MS,
            help="The common start, epoch ms, announced ahead.",
        ),
    ] = None,
    lead: Annotated[
        float,
        typer.Option(
            "--lead",
            min=0,
            max=options.YEAR_S,
            help="Without --start-ms: start in so many seconds.",
        ),
    ] = 2.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the sender's report (JSON) to this file.")
    ] = None,
    schedule_out: Annotated[
        Path | None,
        typer.Option(
            "--schedule-out",
            help="Write the drawn schedule (CSV) to this file (default: beside --out).",
        ),
    ] = None,
    client: Annotated[
        str, typer.Option("--client", help="confluent-kafka (fast) or kafka-python (portable).")
    ] = "confluent-kafka",
    preset: Annotated[
        str,
        typer.Option(
            "--preset", help="Producer settings to start from: default, or those of 2021."
        ),
    ] = "default",
    acks: Annotated[str | None, typer.Option("--acks", help="0, 1 or all (default).")] = None,
    idempotence: Annotated[
        bool | None,
        typer.Option(
            "--idempotence/--no-idempotence",
            help="No duplicates by retries (default with acks=all).",
        ),
    ] = None,
    linger_ms: Annotated[
        float | None,
        typer.Option("--linger-ms", help="The client's own waiting for fuller batches (0)."),
    ] = None,
    batch_bytes: Annotated[
        int | None, typer.Option("--batch-bytes", help="Largest batch per partition (1,000,000).")
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option("--compression", help="none (default), gzip, snappy, lz4 or zstd."),
    ] = None,
    tick_ms: Annotated[
        float | None,
        typer.Option("--tick-ms", help="Least time between two handovers to the client (1)."),
    ] = None,
    delivery_timeout: Annotated[
        float | None,
        typer.Option(
            "--delivery-timeout", help="Seconds until an unacknowledged record failed (30)."
        ),
    ] = None,
    senders: Annotated[
        int,
        typer.Option(
            "--senders",
            min=1,
            help="Processes; process k sends the partitions that are k modulo this number.",
        ),
    ] = 1,
    read_in_ram: Annotated[
        bool | None,
        typer.Option(
            "--read-in-ram/--no-read-in-ram",
            help="Read files into memory, or stream them (default: in memory where they fit).",
        ),
    ] = None,
    read_back: Annotated[
        bool,
        typer.Option(
            "--read-back/--no-read-back",
            help="Afterwards read (a sample of) the topic: LogAppendTime against the schedule.",
        ),
    ] = True,
    prefix: options.Prefix = None,
    bootstrap_servers: options.BootstrapServers = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Replay stream files into a run's source topics, each record when the schedule wants it.

    The schedule never waits: a late sender catches up, and its report tells how late it was.
    Exit code 5 where the load was not as asked (rate, lateness, failures, full queue), 3 where the
    broker failed, 130 when stopped; the report is written in all these cases.

    Example: espbench send --run trial-q4 --stream 1=sensor-1.csv --stream 2=sensor-2.csv
    --rate 1000 --duration 40 --out sender.json
    """
    files = _numbered("--stream", stream)
    rates = _rates(rate or [], files)
    profiles = _per_stream("--profile", profile or [], files)
    settings = context.begin(
        config,
        quiet=quiet,
        verbose=verbose,
        options={
            "load.rate": rates.get(None),
            "load.duration": duration,
            "kafka.prefix": prefix,
            "kafka.bootstrap_servers": bootstrap_servers,
        },
    )
    from sender import send as sending
    from sender.report import write_report
    from sender.settings import ProducerSettings
    from sender.verdict import LATENESS_SHARE_OF_SLO

    for path in filter(None, (out, schedule_out)):
        if path.is_dir():
            raise UsageError(f"{path} is a directory", "name a file in it")
        make_dir(path.parent)
    if out and not schedule_out:
        schedule_out = out.with_name(f"{out.stem}-schedule.csv")
    request = sending.SendRequest(
        run=run,
        bootstrap_servers=broker_address(settings),
        streams=_streams(settings, run, files, rates, profiles),
        duration_s=settings.load.duration,
        lateness_limit_ms=LATENESS_SHARE_OF_SLO * settings.slo.limit_ms,
        producer=ProducerSettings.of(
            preset,
            client=client,
            acks=acks,
            idempotence=idempotence,
            linger_ms=linger_ms,
            batch_bytes=batch_bytes,
            compression=compression,
            tick_ms=tick_ms,
            delivery_timeout_s=delivery_timeout,
        ),
        start_ms=start_ms,
        lead_s=lead,
        in_memory=read_in_ram,
        read_back=read_back,
        schedule_out=schedule_out,
        senders=senders,
    )
    sent = sending.send(request, progress=logs.progress, announce=_announce)
    # Shown before it is written: a full disk must not take the only copy.
    if json:
        context.print_json(sent.report)
    elif not quiet:
        _print_table(sent.report)
    if out:
        write_report(out, sent.report)
    if sent.error:
        raise sent.error
    for reason in sent.report["reasons"]:
        logs.LOGGER.warning("load invalid: %s", reason)
    if not sent.report["valid"]:
        context.finish(ExitCode.UNKNOWN)


def _announce(start_ms: int) -> None:
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(start_ms / 1000, UTC)
    logs.LOGGER.info("sending starts at %s UTC (%d)", f"{moment:%H:%M:%S.%f}"[:-3], start_ms)


def _numbered(option: str, given: list[str]) -> dict[int, str]:
    numbered: dict[int, str] = {}
    for text in given:
        number, equals, value = text.partition("=")
        if not equals or not value or not number.isdigit() or int(number) not in _STREAMS:
            raise UsageError(
                f"{option} {text} does not name a stream", f"write it as {option} 1=…; 1, 2 or 3"
            )
        if int(number) in numbered:
            raise UsageError(f"{option} names stream {number} twice", "give it once")
        numbered[int(number)] = value
    return numbered


def _per_stream(option: str, given: list[str], files: dict[int, str]) -> dict[int | None, str]:
    """Values by stream; the key None holds the value of all others."""
    is_numbered = [text[:2] in {"1=", "2=", "3="} for text in given]
    single = _numbered(option, [text for text, own in zip(given, is_numbered, strict=True) if own])
    common = [text for text, own in zip(given, is_numbered, strict=True) if not own]
    if len(common) > 1:
        raise UsageError(f"{option} is given twice for all streams", "use N=… for one stream")
    for number in single:
        if number not in files:
            raise UsageError(
                f"{option} names stream {number}, which is not sent", "add its --stream"
            )
    texts: dict[int | None, str] = dict(single.items())
    if common:
        texts[None] = common[0]
    return texts


def _rates(given: list[str], files: dict[int, str]) -> dict[int | None, float]:
    rates = {}
    for key, text in _per_stream("--rate", given, files).items():
        try:
            rates[key] = float(text)
        except ValueError as error:
            raise UsageError(f"--rate {text} is not a number", "records per second") from error
        if not 0 < rates[key] <= MOST_PER_S:
            raise UsageError(
                f"--rate {text} is not a rate", f"use a number above 0, up to {MOST_PER_S:,}"
            )
    return rates


def _streams(
    settings: Settings,
    run: str,
    files: dict[int, str],
    rates: dict[int | None, float],
    profiles: dict[int | None, str],
) -> "list[StreamRequest]":
    from espbench.kafka.registry import check_run
    from sender.profile_options import parse_profile
    from sender.send import StreamRequest

    requests = []
    for number, file in sorted(files.items()):
        text = profiles.get(number, profiles.get(None, settings.load.profile))
        rate = rates.get(number, settings.load.rate)
        requests.append(
            StreamRequest(
                stream=number,
                path=Path(file),
                topic=names.source_topic(settings.kafka.prefix, check_run(run), number),
                profile=parse_profile(text, rate=rate, duration_s=settings.load.duration),
                profile_text=text,
            )
        )
    return requests


def _print_table(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("stream", "asked/s", "achieved/s", "sent", "failed", "retried", "stalls")
    for column in ("handed late ms\np50 / p99", "stamped late ms\np50 / p99"):
        table.add_column(column, justify="right")
    table.add_column("brake")
    for row in report["streams"]:
        late = row["lateness_ms"]
        table.add_row(
            str(row["stream"]),
            f"{row['asked_rate']:,.1f}",
            f"{row['achieved_rate']:,.1f}",
            f"{row['acknowledged']:,}",
            f"{row['failed']:,}",
            "-" if row["retried"] is None else f"{row['retried']:,}",
            f"{row['queue_full_stalls']:,}",
            *(_median_and_p99(late[kind]) for kind in ("handed", "appended")),
            row["brake"] or "-",
        )
    # Headings that are cut short say nothing; better a line that the terminal folds.
    Console(file=logs.stdout.file, width=max(logs.stdout.width, 120)).print(table)
    logs.stdout.print(f"CPU of the sender: {report['cpu_s']:.1f} s")
    early = [str(row["stream"]) for row in report["streams"] if row["ended_early"]]
    if early:
        logs.stdout.print(f"the file of stream {', '.join(early)} ended before the schedule")


def _median_and_p99(lateness: dict[str, Any] | None) -> str:
    if not lateness or lateness["p50"] is None:
        return "-"
    return f"{lateness['p50']:.1f} / {lateness['p99']:.1f}"
