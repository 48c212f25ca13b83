"""The live view's eyes on a real broker."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from espbench.config import Settings
from espbench.errors import ServiceError
from espbench.kafka import client as kafka
from espbench.kafka.admin import KafkaAdmin
from espbench.live import broker
from espbench.live.broker import DRAWN, Tail
from espbench.names import find_query, topics_of
from espbench.services.endpoints import bootstrap_servers

Q3 = find_query("q3")
DUE_MS = 1_700_000_000_000
PARTITIONS = 2


@pytest.fixture
def produce(services: Settings) -> Callable[..., None]:
    producer: Any = kafka.library().Producer({"bootstrap.servers": bootstrap_servers(services)})

    def send(topic: str, ids: range, text: str) -> None:
        for number in ids:
            producer.produce(topic, text.format(number), partition=number % PARTITIONS)
        assert producer.flush(30) == 0

    return send


def test_a_look_counts_and_draws_and_leaves_nothing(
    services: Settings, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A look gives up a record that does not come at once; here every one has to come.
    monkeypatch.setattr(broker, "_PATIENCE_S", 10.0)
    address, run = bootstrap_servers(services), f"w{uuid.uuid4().hex[:8]}"
    admin = KafkaAdmin(address)
    tail = Tail(address, Q3, "espbench", run)
    try:
        assert tail.look([]) is None, "there are no topics yet, and none are made"
        topics = topics_of("espbench", run, Q3)
        assert not admin.names() & set(topics.values())
        admin.create(topics.values(), partitions=PARTITIONS, replication_factor=1)
        empty = tail.look([])
        assert empty is not None
        assert (empty.sent, empty.answers, empty.samples) == ({1: 0}, 0, [])
        produce(topics["source-1"], range(300), "{};" + str(DUE_MS) + ";a\tb\t1")
        produce(topics["sink"], range(0, 300, 3), "{};a\tb\t1")
        seen = tail.look([])
        assert seen is not None
        assert (seen.sent, seen.answers, seen.start_ms) == ({1: 300}, 100, DUE_MS)
        assert len(seen.samples) == DRAWN
        assert all(latency_ms >= 0 for _, latency_ms in seen.samples)
        assert 0 < seen.answered_before[topics["source-1"]] <= 300
        # Nothing new: nothing is drawn again.
        again = tail.look([])
        assert again is not None
        assert again.samples == []
        # What no query would answer is passed over.
        produce(topics["sink"], range(1), "no answer {}")
        strange = tail.look([])
        assert strange is not None
        assert strange.samples == []
        admin.delete(topics.values())
        assert tail.look([]) is None
    finally:
        tail.close()


def test_a_broker_that_is_not_there_is_said(services: Settings) -> None:
    assert services
    with pytest.raises(ServiceError, match="does not answer"):
        Tail("127.0.0.1:1", Q3, "espbench", "none")
