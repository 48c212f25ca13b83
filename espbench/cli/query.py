"""`espbench query NAME`: run one query on Spark until stopped, or until its work is done."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from espbench import logs, names
from espbench.cli import context, options
from espbench.config import Settings
from espbench.errors import ServiceError
from espbench.paths import StateDir, make_dir
from espbench.services.endpoints import bootstrap_servers as kafka_address
from espbench.services.endpoints import database_address

if TYPE_CHECKING:
    from espbench.kafka.admin import KafkaAdmin
    from queries.engine import Engine
    from queries.job import Job
    from queries.progress import Offsets
    from queries.rehearsal import Rehearsal
    from queries.report import Report
    from schema.contract import Database

# The watch over the broker asks often and has patience of its own.
ASK_TIMEOUT_S = 5.0


def query(
    name: Annotated[str, typer.Argument(help="The query, by name or number: q3.")],
    run: options.Run,
    engine: options.Engine = None,
    master: options.Master = None,
    prefix: options.Prefix = None,
    bootstrap_servers: options.BootstrapServers = None,
    until: Annotated[
        Path | None,
        typer.Option(
            help="A sender's report, which may appear later: stop once all it sent is answered."
        ),
    ] = None,
    until_idle: Annotated[
        float | None,
        typer.Option(
            min=0.1, callback=options.finite, help="Stop after so many seconds without input."
        ),
    ] = None,
    ready_file: Annotated[
        Path | None, typer.Option(help="Written as soon as the query consumes.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The query's report; progress and Spark's log go beside it."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Spark's checkpoint, a directory (default: by run, in the state directory or in "
            "spark.checkpoint_dir)."
        ),
    ] = None,
    freshness: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds until a change of a looked-up table must be seen (10)."),
    ] = None,
    rehearsal: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds of warming up on made-up records and topics of its own, before it is "
            "ready (0: none; by default 10 where load.duration is 60 or more, else 0).",
        ),
    ] = None,
    db: options.Db = None,
    trigger_ms: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Time between micro-batches (default: as soon as possible), or between the "
            "checkpoints of real-time mode.",
        ),
    ] = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Run one query on Spark: read its source topics from the start, write its sink topic.

    The topics must exist (`espbench topics create`). It runs until it is stopped by SIGTERM or
    Ctrl-C (exit code 130), until everything in a sender's report is answered for (--until), until
    no more input comes (--until-idle), or, with --engine available-now, until it has answered what
    was there. Started again with the same --run it goes on from its checkpoint: nothing is lost,
    the last answers may be repeated (at-least-once).

    Example: espbench query q3 --run trial-q3 --until sent.json --out query.json
    """
    settings = context.begin(
        config,
        quiet=quiet,
        verbose=verbose,
        options={
            "spark.engine": engine,
            "spark.master": master,
            "spark.freshness": freshness,
            "spark.rehearsal": rehearsal,
            "kafka.prefix": prefix,
            "kafka.bootstrap_servers": bootstrap_servers,
            "database.url": db,
        },
    )
    from queries.report import write_json
    from queries.runner import run_query

    job, report = _prepare(
        settings,
        names.find_query(name),
        run,
        out=out,
        checkpoint=checkpoint,
        until=until,
        until_idle_s=until_idle,
        ready_file=ready_file,
        trigger_ms=trigger_ms,
    )
    try:
        run_query(job, report)
    finally:
        if out:
            write_json(out, report.document())
    totals = report.totals
    logs.LOGGER.info("%s records in %s batches", f"{totals.input_rows:,}", f"{totals.batches:,}")
    if totals.malformed:
        logs.LOGGER.warning("%s malformed records were left out", f"{totals.malformed:,}")
    if json:
        context.print_json(report.document())


def _prepare(
    settings: Settings,
    query: names.Query,
    run: str,
    *,
    out: Path | None,
    checkpoint: Path | None,
    until: Path | None,
    until_idle_s: float | None,
    ready_file: Path | None,
    trigger_ms: int | None,
) -> "tuple[Job, Report]":
    """Check everything that can be checked before Spark starts, which takes seconds."""
    from espbench.kafka.admin import KafkaAdmin
    from espbench.kafka.registry import check_run
    from espbench.services.jars import class_path
    from espbench.services.java import find_java
    from queries import cluster, engine
    from queries.drain import Finish, read_goal
    from queries.job import Job
    from queries.registry import DEFINITIONS
    from queries.report import Report
    from queries.session import Places

    definition = DEFINITIONS[query]
    cluster.check_master(settings.spark.master)
    if given := checkpoint or settings.spark.checkpoint_dir:
        cluster.check_checkpoint(given)
    topics = names.topics_of(settings.kafka.prefix, check_run(run), query)
    sources = tuple(topic for role, topic in topics.items() if role != "sink")
    address = kafka_address(settings)
    admin = KafkaAdmin(address, timeout_s=ASK_TIMEOUT_S)
    partitions = _partitions(admin, topics)
    if until:
        read_goal(until, sources)
    freshness = settings.spark.freshness if query.lookup_table else None
    database = _database(settings, query)
    plan = engine.choose(
        settings.spark.engine,
        definition.engines,
        query=query.name,
        master=settings.spark.master,
        tasks=definition.tasks(sum(partitions[topic] for topic in sources)),
        trigger_ms=trigger_ms,
        freshness_s=freshness,
        homeless=()
        if given or cluster.on_this_machine(settings.spark.master)
        else definition.stateful,
        piped=definition.piped,
    )
    cluster.require_master(plan.master)
    work = make_dir(StateDir.of(settings).root / "queries" / run / query.name)
    beside = (out.resolve().parent / out.stem) if out else work / "query"
    make_dir(beside.parent)
    places = Places(work=work, log=beside.with_name(f"{beside.name}-spark.log"))
    base = settings.spark.checkpoint_dir
    where = checkpoint or (base / run / query.name if base else work / "checkpoint")
    job = Job(
        definition=definition,
        topics=topics,
        bootstrap_servers=address,
        ask_broker=admin.names,
        plan=plan,
        places=places,
        checkpoint=where.expanduser().resolve(),
        jars=class_path(settings, "spark"),
        java_home=find_java(settings).home,
        driver_memory=settings.spark.driver_memory,
        finish=Finish(
            sources,
            until,
            until_idle_s,
            long_batches=plan.engine is engine.Engine.REAL_TIME,
            ends=lambda: _ends(admin, sources),
        ),
        freshness_s=settings.spark.freshness,
        database=database,
        partitions={topic: partitions[topic] for topic in sources},
        kafka_options=settings.kafka.options,
        spark_conf=settings.spark.conf,
        ready_file=ready_file,
        rehearsal=_rehearsal(settings, plan.engine, run, admin),
    )
    report = Report(
        query=query.name,
        run=run,
        engine=plan.engine,
        master=plan.master,
        trigger_ms=plan.trigger_ms,
        guarantee="at-least-once",
        emits=job.way.emits,
        freshness_s=freshness,
        topics=topics,
        progress_file=beside.with_name(f"{beside.name}-progress.jsonl"),
        log_file=places.log,
        checkpoint=job.checkpoint,
    )
    return job, report


def _rehearsal(
    settings: Settings, mode: "Engine", run: str, admin: "KafkaAdmin"
) -> "Rehearsal | None":
    """None where nothing waits: available-now has its records already."""
    from espbench.kafka.registry import TopicRegistry
    from queries.engine import Engine
    from queries.rehearsal import Rehearsal

    if mode is Engine.AVAILABLE_NOW or not settings.rehearsal_s:
        return None
    return Rehearsal(
        seconds=settings.rehearsal_s,
        admin=admin,
        registry=TopicRegistry(StateDir.of(settings).topics),
        run=names.rehearsal_of(run),
        replication_factor=settings.kafka.replication_factor,
    )


def _ends(admin: "KafkaAdmin", topics: tuple[str, ...]) -> "Offsets":
    """Where the topics end now."""
    return {topic: {each.partition: each.end for each in admin.offsets(topic)} for topic in topics}


def _partitions(admin: "KafkaAdmin", topics: dict[str, str]) -> dict[str, int]:
    found = admin.describe(topics.values())
    if missing := [topic for topic in topics.values() if topic not in found]:
        raise ServiceError(
            f"the topic {missing[0]} does not exist",
            "make it with `espbench topics create`, or check --run and --prefix",
        )
    return {name: len(topic.partitions) for name, topic in found.items()}


def _database(settings: Settings, query: names.Query) -> "Database | None":
    """The database of a query with tables, seen to hold them."""
    if not query.tables:
        return None
    from schema.marker import accept, read_marker
    from schema.registry import open_database

    database = open_database(database_address(settings))
    with database.reading() as connection:
        accept(database, read_marker(database, connection), None)
    return database
