"""Which broker leads which partition of the topics of a run."""

from collections.abc import Sequence
from typing import Any


def assignments(
    topics: int, partitions: int, replication_factor: int, brokers: Sequence[int]
) -> list[list[list[int]]]:
    """Brokers of each partition of each topic, its leader first: in turn, so that none has more.

    Kafka begins at a random broker for each topic, so that source and sink of one partition may
    come to the same one, and in the next run not. Empty lists where it is for Kafka to refuse.
    """
    count = len(brokers)
    if count < max(2, replication_factor):
        return [[] for _ in range(topics)]
    return [
        [
            [brokers[(topic + partition + place) % count] for place in range(replication_factor)]
            for partition in range(partitions)
        ]
        for topic in range(topics)
    ]


def placed(replication_factor: int, places: list[list[int]]) -> dict[str, Any]:
    """As `NewTopic` takes it: the one or the other, never both."""
    return {"replica_assignment": places} if places else {"replication_factor": replication_factor}
