"""Which broker leads which partition."""

from collections import Counter

import pytest

from espbench.kafka.spread import assignments, placed


@pytest.mark.parametrize("topics", [2, 3])
@pytest.mark.parametrize("partitions", [1, 3, 4])
@pytest.mark.parametrize("replication_factor", [1, 2, 3])
@pytest.mark.parametrize("brokers", [(1, 2, 3), (4, 9, 11, 12)])
def test_no_broker_leads_much_more_than_another(
    topics: int, partitions: int, replication_factor: int, brokers: tuple[int, ...]
) -> None:
    found = assignments(topics, partitions, replication_factor, brokers)
    assert [len(topic) for topic in found] == [partitions] * topics
    for topic in found:
        leaders = Counter(replicas[0] for replicas in topic)
        assert max(leaders.values()) - min(leaders[each] for each in brokers) <= 1
        for replicas in topic:
            assert len(set(replicas)) == replication_factor
            assert set(replicas) <= set(brokers)
    # Source and sink of one partition never share a broker.
    assert found[0][0][0] != found[1][0][0]


def test_one_broker_and_too_many_replicas_are_left_to_kafka() -> None:
    assert assignments(2, 1, 1, [1]) == [[], []]
    assert assignments(2, 1, 3, [1, 2]) == [[], []]
    assert placed(3, []) == {"replication_factor": 3}
    assert placed(2, [[1, 2]]) == {"replica_assignment": [[1, 2]]}
