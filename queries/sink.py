"""The sink, for answers that the driver holds: written by a producer of its own.

Spark would plan and run a job for some hundred records; handing them to Kafka is all there is to
do. As durable as Spark's own sink: acknowledged by every in-sync replica before a batch is done.
"""

from typing import TYPE_CHECKING, Any

from espbench.errors import ServiceError
from espbench.kafka import client
from espbench.kafka.security import login

if TYPE_CHECKING:
    from collections.abc import Iterable

PATIENCE_S = 120.0


class Sink:
    """Writes records to one topic."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._topic = topic
        self._failed: list[Any] = []
        self._producer = client.library().Producer(
            {
                **login(bootstrap_servers),
                "bootstrap.servers": str(bootstrap_servers),
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                # What is too large is the broker's to say, as it was with the record behind it.
                "message.max.bytes": 100_000_000,
                "message.timeout.ms": int(PATIENCE_S * 1_000),
                # Keys go where Kafka's own client, and so Spark, would put them.
                "partitioner": "murmur2_random",
                "on_delivery": self._note,
            },
            logger=client.logger(),
        )

    def write(self, records: "Iterable[tuple[str | None, str]]") -> None:
        """Write keys and values, in order; they are acknowledged on return.

        Raises `ServiceError` where one of them is not.
        """
        for key, value in records:
            self._produce(key, value)
        left = self._producer.flush(PATIENCE_S)
        if self._failed or left:
            why = client.reason(self._failed[0]) if self._failed else "no acknowledgement"
            raise ServiceError(
                f"Kafka did not take the answers for {self._topic}: {why}",
                "look into the broker's log; started again, the query goes on from its checkpoint",
            )

    def _produce(self, key: str | None, value: str) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value.encode(), key)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _note(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failed.append(error)
