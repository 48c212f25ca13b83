"""`espbench validate`: verdict, latencies and sustainability from a capture or from plain files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from espbench import logs
from espbench.cli import context, options
from espbench.errors import InputError, UsageError, worst
from espbench.names import Query, parse_queries

if TYPE_CHECKING:
    from espbench.config import Settings
    from validator.capturedir import Overrides
    from validator.request import Request
    from validator.topics import Claim
    from validator.verdict import Verdict


def validate(
    captures: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[CAPTURE_DIR]...",
            help="Capture directories, or directories of them; none with --source and --sink.",
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query", "--queries", help="The query of the plain files: 3, q3 or identify-errors."
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", help="STREAM=FILE: a source topic as Parquet or JSON Lines of kcat -C -J."
        ),
    ] = None,
    sink: Annotated[Path | None, typer.Option("--sink", help="The sink topic, likewise.")] = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", help="NAME=FILE: a table as CSV with header or Parquet."),
    ] = None,
    guarantee: Annotated[
        str | None,
        typer.Option(
            "--guarantee",
            help="What the system under test declares: at-least-once (default) or exactly-once.",
        ),
    ] = None,
    rate: options.Rate = None,
    duration: options.Duration = None,
    warmup: options.Warmup = None,
    slo: Annotated[
        float | None,
        typer.Option("--slo", help="Limit of the latency's 90th percentile, in milliseconds."),
    ] = None,
    freshness: Annotated[
        float | None,
        typer.Option("--freshness", help="Seconds until a change of the downtimes must be seen."),
    ] = None,
    transactional: Annotated[
        bool,
        typer.Option(
            "--transactional",
            help="The plain files' topics hold transactions: gaps in their offsets are no loss.",
        ),
    ] = False,
    sender_report: Annotated[
        Path | None, typer.Option("--sender-report", help="The sender's report of these files.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Directory for verdict, latencies and lag as files."),
    ] = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Judge what a system answered: correctness, latency, sustainability, validity of the load.

    From a capture directory, or from plain files that anyone may have captured. Needs neither Kafka
    nor a database. Leaves with 0 if correct and valid and all gates are met, 4 if incorrect, 5 if
    the evidence does not tell or the load was invalid, 6 if only the SLO or sustainability is
    missed.

    Example: espbench validate results/20260101T120000-ab12/capture/identify-errors

    Example: espbench validate --query q3 --source 1=in.jsonl --sink out.jsonl --rate 1000
    """
    from validator.capturedir import Overrides
    from validator.request import GUARANTEES, LARGEST, Slo
    from validator.topics import Claim

    settings = context.begin(config, quiet=quiet, verbose=verbose)
    if guarantee is not None and guarantee not in GUARANTEES:
        raise UsageError(
            f"--guarantee {guarantee} is not known", f"it is one of {', '.join(GUARANTEES)}"
        )
    for name, number in (("rate", rate), ("duration", duration), ("slo", slo)):
        if number is not None and not 0 < number <= LARGEST:
            raise UsageError(f"--{name} {number:g} is not between 0 and 1e9", "correct it")
    for name, number in (("warmup", warmup), ("freshness", freshness)):
        if number is not None and not 0 <= number <= LARGEST:
            raise UsageError(f"--{name} {number:g} is not between 0 and 1e9 seconds", "correct it")
    overrides = Overrides(
        guarantee=guarantee,
        rate=rate,
        duration_s=duration,
        warmup_s=warmup,
        freshness_s=freshness,
        sender_report=_report(sender_report),
        slo=Slo(settings.slo.percentile, slo or settings.slo.limit_ms),
    )
    plain = [name for name, given in (("--source", source), ("--sink", sink)) if given]
    if captures and plain:
        raise UsageError(
            f"{plain[0]} and a capture directory are given", "judge either the one or the other"
        )
    if captures:
        verdicts = _judge_captures(captures, query, overrides)
    else:
        claim = Claim(transactional=transactional)
        files = (source or [], sink, table or [])
        request = _plain_request(query, *files, overrides, claim, settings)
        verdicts = [_judge(request)]
    _tell(verdicts, out, json=json)
    context.finish(worst([verdict.exit_code() for verdict in verdicts]))


def _judge_captures(
    captures: list[Path], query: str | None, overrides: "Overrides"
) -> list["Verdict"]:
    from validator.capturedir import BrokenCaptureError, find_captures, read_capture
    from validator.verdict import Verdict

    wanted = {found.name for found in parse_queries(query)} if query else None
    verdicts = []
    for directory in (found for capture in captures for found in find_captures(capture)):
        try:
            request = read_capture(directory, overrides)
        except BrokenCaptureError as error:
            verdicts.append(Verdict(query=error.query, problems=[str(error)]))
            continue
        if wanted is None or request.query.name in wanted:
            verdicts.append(_judge(request))
    if not verdicts:
        raise UsageError(f"no capture of {query} is there", "name a query that was captured")
    return verdicts


def _judge(request: "Request") -> "Verdict":
    from validator.judge import judge

    logs.LOGGER.info("judging %s", request.query.name)
    return judge(request)


def _plain_request(
    query: str | None,
    sources: list[str],
    sink: Path | None,
    tables: list[str],
    overrides: "Overrides",
    claim: "Claim",
    settings: "Settings",
) -> "Request":
    from validator.request import Request
    from validator.tables import TABLES
    from validator.topics import TopicFile

    if query is None:
        raise UsageError(
            "neither a capture directory nor --query is given",
            "as in: espbench validate --query q3 --source 1=in.jsonl --sink out.jsonl",
        )
    found = parse_queries(query)
    if len(found) != 1:
        raise UsageError("plain files are those of one query", "name one query")
    (wanted,) = found
    files = {
        stream: TopicFile(f"source-{stream}", path, claim)
        for stream, path in _sources(wanted, sources).items()
    }
    if wanted.sink and sink is None:
        raise UsageError(f"--sink is needed for {wanted.name}", "name the sink topic's file")
    if not wanted.sink and sink is not None:
        raise UsageError(f"{wanted.name} has no sink topic", "leave --sink out")
    table_files = {}
    for text in tables:
        name, sign, file = text.partition("=")
        if not sign or name not in TABLES or name in table_files:
            raise UsageError(
                f"--table {text} is not NAME=FILE", f"a name is one of {', '.join(TABLES)}, once"
            )
        table_files[name] = _existing(Path(file), "--table")
    for name in wanted.tables:
        if name not in table_files:
            raise UsageError(f"{wanted.name} needs the table {name}", f"add --table {name}=FILE")
    warmup_s, freshness_s = overrides.warmup_s, overrides.freshness_s
    return Request(
        query=wanted,
        sources=files,
        sink=TopicFile("sink", _existing(sink, "--sink"), claim) if sink else None,
        tables={name: table_files[name] for name in wanted.tables},
        guarantee=overrides.guarantee or settings.guarantee,
        rate=overrides.rate,
        duration_s=overrides.duration_s,
        warmup_s=settings.load.warmup if warmup_s is None else warmup_s,
        freshness_s=settings.spark.freshness if freshness_s is None else freshness_s,
        slo=overrides.slo,
        sender_report=overrides.sender_report,
    )


def _sources(query: Query, texts: list[str]) -> dict[int, Path]:
    """`--source 1=in.jsonl`, for every stream of the query exactly once."""
    found: dict[int, Path] = {}
    for text in texts:
        number, sign, file = text.partition("=")
        if not sign or number not in {str(stream) for stream in query.streams}:
            streams = " or ".join(str(stream) for stream in query.streams)
            raise UsageError(
                f"--source {text} is not STREAM=FILE of {query.name}", f"its streams are {streams}"
            )
        if int(number) in found:
            raise UsageError(f"--source {number}=… is given twice", "name one file per stream")
        found[int(number)] = _existing(Path(file), "--source")
    for stream in query.streams:
        if stream not in found:
            raise UsageError(f"{query.name} reads stream {stream}", f"add --source {stream}=FILE")
    return found


def _existing(path: Path, option: str) -> Path:
    if not path.is_file():
        what = "is not a file" if path.exists() else "does not exist"
        raise InputError(f"{path} ({option}) {what}", "name a file that can be read")
    return path


def _report(path: Path | None) -> dict[str, Any] | None:
    import json

    if path is None:
        return None
    try:
        found = json.loads(_existing(path, "--sender-report").read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}", "name a sender's report") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is no sender's report", "name what `espbench send --out` wrote")
    return found


def _tell(verdicts: list["Verdict"], out: Path | None, *, json: bool) -> None:
    from validator.show import render
    from validator.store import store

    several = len(verdicts) > 1
    if out is not None:
        for verdict in verdicts:
            store(verdict, out / (verdict.query or "unknown") if several else out)
    if json:
        documents = [verdict.document() for verdict in verdicts]
        context.print_json({"queries": documents} if several else documents[0])
        return
    for verdict in verdicts:
        logs.stdout.print(render(verdict))
