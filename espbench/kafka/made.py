"""Make and delete a run's topics: cluster and record change together."""

from collections.abc import Iterable
from contextlib import suppress

from espbench.errors import ServiceError, UsageError
from espbench.kafka.admin import KafkaAdmin, topic_exists
from espbench.kafka.registry import MadeTopic, MadeTopics, TopicRegistry


def create_topics(
    admin: KafkaAdmin,
    registry: TopicRegistry,
    run: str,
    names: Iterable[str],
    *,
    partitions: int,
    replication_factor: int,
) -> MadeTopics:
    """Make topics for a run and record them; all or none.

    The record is written before the topics are made, so that even a killed process leaves no
    topic that `delete_topics` would not know. Raises `UsageError` where a topic exists.
    """
    wanted = tuple(dict.fromkeys(names))
    before = registry.read(run)
    if before and before.cluster_id != admin.cluster_id:
        raise _other_cluster(before, admin)
    kept = before.topics if before else ()
    existing = admin.names().intersection(wanted)
    if existing:
        raise topic_exists(sorted(existing))
    # A name that an older record holds and the cluster lacks was deleted by other means.
    kept = tuple(each for each in kept if each.name not in wanted)
    planned = tuple(MadeTopic(name, None, partitions) for name in wanted)
    registry.write(MadeTopics(run, admin.cluster_id, kept + planned))
    try:
        admin.create(wanted, partitions=partitions, replication_factor=replication_factor)
        found = admin.describe(wanted)
        made = tuple(MadeTopic(name, found[name].topic_id, partitions) for name in wanted)
        complete = MadeTopics(run, admin.cluster_id, kept + made)
        registry.write(complete)
    except UsageError:
        # Somebody else made one of them meanwhile: it is not ours to delete.
        _restore(registry, run, before)
        raise
    except BaseException:
        # Where the broker cannot say that nothing is left, the record stays for `delete_topics`.
        with suppress(ServiceError):
            if not admin.names().intersection(wanted):
                _restore(registry, run, before)
        raise
    return complete


def delete_topics(admin: KafkaAdmin, registry: TopicRegistry, run: str) -> list[str]:
    """Delete the topics that a run recorded, and the record; returns those that still existed.

    A topic of the same name that somebody made anew since (its id tells) is left alone.
    """
    made = registry.read(run)
    if made is None:
        raise UsageError(
            f"no topics are recorded for the run {run}", "`espbench topics list` shows the runs"
        )
    if made.cluster_id != admin.cluster_id:
        raise _other_cluster(made, admin)
    found = admin.describe(each.name for each in made.topics)
    ours = [
        each.name
        for each in made.topics
        if each.name in found and each.topic_id in {None, found[each.name].topic_id}
    ]
    deleted = admin.delete(ours)
    registry.forget(run)
    return deleted


def _restore(registry: TopicRegistry, run: str, before: MadeTopics | None) -> None:
    if before:
        registry.write(before)
    else:
        registry.forget(run)


def _other_cluster(made: MadeTopics, admin: KafkaAdmin) -> UsageError:
    return UsageError(
        f"the topics of the run {made.run} were made on the cluster {made.cluster_id}, "
        f"but {admin.bootstrap_servers} is {admin.cluster_id}",
        "name that cluster by --bootstrap-servers; if it is gone: "
        f"`espbench topics delete --run {made.run} --forget`",
    )
