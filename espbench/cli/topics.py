"""`espbench topics create|list|delete`: the topics of a run."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from espbench import logs, names
from espbench.cli import context, options
from espbench.config import Settings
from espbench.errors import UsageError
from espbench.paths import StateDir
from espbench.services.endpoints import bootstrap_servers

if TYPE_CHECKING:
    from espbench.kafka.admin import KafkaAdmin
    from espbench.kafka.registry import TopicRegistry

topics = typer.Typer(
    name="topics",
    help="Make, list and delete the topics of a run. "
    "Example: espbench topics create --run trial-q3 --queries q3",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@topics.command()
def create(
    run: options.Run,
    queries: options.Queries = None,
    partitions: options.Partitions = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", help="Copies of every partition.")
    ] = None,
    prefix: options.Prefix = None,
    bootstrap_servers: options.BootstrapServers = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Make the source and sink topics that queries need, and record them for the run.

    Every topic is stamped by LogAppendTime and keeps its records for ever. A topic that already
    exists is an error (exit code 2) and nothing is made. If one creation fails, none remains.

    Example: espbench topics create --run trial-q3 --queries q3
    """
    settings = context.begin(
        config,
        quiet=quiet,
        verbose=verbose,
        options={
            "queries": queries,
            "kafka.partitions": partitions,
            "kafka.replication_factor": replication_factor,
            "kafka.prefix": prefix,
            "kafka.bootstrap_servers": bootstrap_servers,
        },
    )
    from espbench.kafka.made import create_topics
    from espbench.kafka.registry import check_run

    wanted = [
        topic
        for query in names.parse_queries(settings.queries)
        for topic in names.topics_of(settings.kafka.prefix, check_run(run), query).values()
    ]
    admin, registry = _connect(settings)
    made = create_topics(
        admin,
        registry,
        run,
        wanted,
        partitions=settings.kafka.partitions,
        replication_factor=settings.kafka.replication_factor,
    )
    new = [each for each in made.topics if each.name in wanted]
    if json:
        context.print_json(
            {
                "run": run,
                "cluster_id": made.cluster_id,
                "topics": [{"name": each.name, "partitions": each.partitions} for each in new],
            }
        )
    for each in new:
        logs.LOGGER.info("made %s, partitions: %d", each.name, each.partitions)


@topics.command("list")
def list_topics(
    run: Annotated[str | None, typer.Option("--run", help="Only this run's topics.")] = None,
    bootstrap_servers: options.BootstrapServers = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """List the recorded topics of all runs, and how many records each holds.

    Example: espbench topics list --run trial-q3
    """
    settings = context.begin(
        config,
        quiet=quiet,
        verbose=verbose,
        options={"kafka.bootstrap_servers": bootstrap_servers},
    )
    admin, registry = _connect(settings)
    rows: list[dict[str, Any]] = []
    for each_run in [run] if run else registry.runs():
        made = registry.read(each_run)
        if made is None:
            raise _unknown_run(each_run)
        here = made.cluster_id == admin.cluster_id
        found = admin.describe(each.name for each in made.topics) if here else {}
        for each in made.topics:
            topic = found.get(each.name)
            same = topic is not None and each.topic_id in {None, topic.topic_id}
            records = sum(r.count for r in admin.offsets(each.name)) if same else None
            rows.append(
                {
                    "run": each_run,
                    "name": each.name,
                    "partitions": each.partitions,
                    "records": records,
                    "state": "exists" if same else "gone" if here else "on another cluster",
                }
            )
    if json:
        context.print_json({"cluster_id": admin.cluster_id, "topics": rows})
        return
    for row in rows:
        count = "" if row["records"] is None else f", records: {row['records']:,}"
        logs.stdout.print(
            f"{row['name']}  partitions: {row['partitions']}{count}, {row['state']}",
            highlight=False,
            soft_wrap=True,
        )


@topics.command()
def delete(
    run: options.Run,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Only drop the record: for a cluster that is gone."),
    ] = False,
    bootstrap_servers: options.BootstrapServers = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Delete the topics that a run recorded; nothing else, and nothing by pattern.

    Example: espbench topics delete --run trial-q3
    """
    settings = context.begin(
        config,
        quiet=quiet,
        verbose=verbose,
        options={"kafka.bootstrap_servers": bootstrap_servers},
    )
    from espbench.kafka.made import delete_topics
    from espbench.kafka.registry import TopicRegistry

    deleted: list[str] = []
    if forget:
        registry = TopicRegistry(StateDir.of(settings).topics)
        if registry.read(run) is None:
            raise _unknown_run(run)
        registry.forget(run)
        registry.forget(names.rehearsal_of(run))
    else:
        admin, registry = _connect(settings)
        deleted = delete_topics(admin, registry, run)
        if registry.read(names.rehearsal_of(run)):  # one that was killed
            deleted += delete_topics(admin, registry, names.rehearsal_of(run))
        # A checkpoint of these topics would skip records of new ones with the same names.
        shutil.rmtree(StateDir.of(settings).root / "queries" / run, ignore_errors=True)
        if base := settings.spark.checkpoint_dir:
            _remove_checkpoints(base.expanduser() / run)
    if json:
        context.print_json({"run": run, "deleted": deleted})
    for name in deleted:
        logs.LOGGER.info("deleted %s", name)


def _remove_checkpoints(of_run: Path) -> None:
    """Of queries, as their markers tell; what else is there stays."""
    for marker in of_run.glob("*/espbench.json"):
        shutil.rmtree(marker.parent, ignore_errors=True)
    if of_run.is_dir() and not any(of_run.iterdir()):
        of_run.rmdir()


def _connect(settings: Settings) -> "tuple[KafkaAdmin, TopicRegistry]":
    from espbench.kafka.admin import KafkaAdmin
    from espbench.kafka.registry import TopicRegistry

    admin = KafkaAdmin(bootstrap_servers(settings))
    return admin, TopicRegistry(StateDir.of(settings).topics)


def _unknown_run(run: str) -> UsageError:
    return UsageError(
        f"no topics are recorded for the run {run}", "`espbench topics list` shows the runs"
    )
