"""What can be seen to be wrong with a run before anything of it is started."""

from espbench.config import Settings
from espbench.errors import UsageError
from espbench.names import Query, topics_of
from espbench.services.endpoints import embedded_database, parse_database_url


def check_run(settings: Settings, queries: tuple[Query, ...]) -> None:
    """Raise what a step would only raise minutes later: profile, database, execution mode."""
    from queries.cluster import check_master
    from sender.profile_options import parse_profile

    parse_profile(settings.load.profile, rate=settings.load.rate, duration_s=settings.load.duration)
    if embedded_database(settings) is None:
        parse_database_url(settings)
    check_master(settings.spark.master)
    for query in queries:
        _check_engine(settings, query)


def _check_engine(settings: Settings, query: Query) -> None:
    from queries import cluster, engine
    from queries.registry import DEFINITIONS

    if settings.spark.engine == "available-now":
        raise UsageError(
            "available-now ends at once where nothing was sent yet, so a run cannot use it",
            "use --engine auto, micro-batch or real-time",
        )
    definition = DEFINITIONS[query]
    sources = [role for role in topics_of("", "", query) if role != "sink"]
    engine.choose(
        settings.spark.engine,
        definition.engines,
        query=query.name,
        master=settings.spark.master,
        tasks=definition.tasks(settings.kafka.partitions * len(sources)),
        freshness_s=settings.spark.freshness if query.lookup_table else None,
        homeless=()
        if settings.spark.checkpoint_dir or cluster.on_this_machine(settings.spark.master)
        else definition.stateful,
        piped=definition.piped,
    )
