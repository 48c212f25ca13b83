"""The fast client against librdkafka's own mock cluster: no broker, the real code path."""

import time
from collections.abc import Callable

import pytest

from espbench.errors import ServiceError
from sender.clients.confluent import ConfluentClient
from sender.settings import ProducerSettings

NEVER: Callable[[], bool] = lambda: False  # noqa: E731 - a constant, named for its meaning


def mock_client(**settings: object) -> ConfluentClient:
    return ConfluentClient(
        "mock",
        ProducerSettings(**settings),  # type: ignore[arg-type]
        **{"test.mock.num.brokers": 1},
    )


def test_everything_handed_is_acknowledged() -> None:
    client = mock_client()
    client.connect(["t"], 10.0)
    assert client.hand("t", 0, [b"%d" % i for i in range(500)]) == 500
    assert client.hand("t", 3, [b"x"]) == 1
    client.finish(10.0, NEVER)
    tally = client.tally("t")
    assert tally.handed == {0: 500, 3: 1}
    assert tally.failed == {}
    assert tally.retried == 0
    assert client.failure is None


def test_a_full_queue_takes_the_first_ones() -> None:
    client = mock_client(queue_records=100, linger_ms=5_000)
    client.connect(["t"], 10.0)
    assert client.hand("t", 0, [b"x"] * 150) == 100
    assert client.tally("t").handed == {0: 100}


def test_a_partition_that_is_not_there_fails_by_name() -> None:
    client = mock_client(delivery_timeout_s=2.0)
    client.connect(["t"], 10.0)
    client.hand("t", 99, [b"x"] * 3)
    client.finish(10.0, NEVER)
    assert client.tally("t").failed == {99: 3}
    assert "UNKNOWN_PARTITION" in (client.failure or "")


def test_a_broker_that_never_answers_fails_within_the_timeout() -> None:
    client = ConfluentClient(
        "127.0.0.1:1",
        ProducerSettings(idempotence=False, delivery_timeout_s=0.5),
    )
    client.hand("t", 0, [b"x"] * 10)
    began = time.monotonic()
    client.finish(30.0, NEVER)
    assert time.monotonic() - began < 20
    assert client.tally("t").failed == {0: 10}
    assert client.failure


def test_a_stop_gives_up_what_is_outstanding() -> None:
    client = ConfluentClient("127.0.0.1:1", ProducerSettings(idempotence=False))
    client.hand("t", 0, [b"x"] * 10)
    client.finish(30.0, lambda: True)
    assert client.tally("t").failed == {0: 10}


def test_connecting_to_nobody_is_a_clear_error() -> None:
    client = ConfluentClient("127.0.0.1:1", ProducerSettings())
    with pytest.raises(ServiceError, match=r"Kafka at 127\.0\.0\.1:1 does not answer"):
        client.connect(["t"], 0.5)
