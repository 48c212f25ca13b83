"""kafka-python: the portable client, far slower: every record is Python's work.

The library bounds no queue, so this module counts what is outstanding and refuses beyond
`queue_records`. Its callbacks run in a thread of the library.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from espbench.errors import MissingExtra, UsageError
from espbench.kafka import client as kafka
from espbench.kafka.security import login
from sender.clients import Tally
from sender.settings import ProducerSettings

_STEP_S = 0.1


class KafkaPythonClient:
    """Sends by kafka-python. It does not tell how often it sent a record again."""

    def __init__(self, bootstrap_servers: str, settings: ProducerSettings) -> None:
        try:
            from kafka import KafkaProducer  # noqa: PLC0415 - an extra
            from kafka.errors import KafkaError  # noqa: PLC0415 - likewise
        except ImportError as error:
            raise MissingExtra("kafka-python", "kafka") from error
        if login(bootstrap_servers):
            raise UsageError(
                "kafka-python is not told of kafka.options (security.protocol and the like)",
                "use --client confluent-kafka",
            )
        self._bootstrap_servers = bootstrap_servers
        self._kafka_error = KafkaError
        self._queue_records = settings.queue_records
        self._handed_count = 0
        self._settled_count = 0
        self._failed: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._handed: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._failure: str | None = None
        try:
            self._producer = KafkaProducer(**_translated(bootstrap_servers, settings))
        except KafkaError as error:
            raise kafka.unreachable(bootstrap_servers, _reason(error)) from error

    def connect(self, topics: Sequence[str], timeout_s: float) -> None:
        """Learn the topics' leaders."""
        deadline = time.monotonic() + timeout_s
        for topic in topics:
            while True:
                try:
                    self._producer.partitions_for(topic)
                    break
                except self._kafka_error as error:
                    if time.monotonic() > deadline:
                        raise kafka.unreachable(self._bootstrap_servers, _reason(error)) from error

    def hand(self, topic: str, partition: int, values: list[bytes]) -> int:
        """Hand values over one by one, as many as the queue has room for."""
        room = max(0, self._queue_records - (self._handed_count - self._settled_count))
        failed = partial(self._note_failure, topic, partition)
        taken = values[:room]
        self._handed[topic][partition] += len(taken)
        self._handed_count += len(taken)
        for value in taken:
            try:
                future = self._producer.send(topic, value, partition=partition)
            except self._kafka_error as error:
                failed(error)
            else:
                future.add_callback(self._note_success)
                future.add_errback(failed)
        return len(taken)

    def serve(self) -> None:
        """Nothing to do: a thread of the library works."""

    @property
    def failure(self) -> str | None:
        """Why the first record failed."""
        return self._failure

    def finish(self, timeout_s: float, stop: Callable[[], bool]) -> None:
        """Flush in steps, or give up."""
        deadline = time.monotonic() + timeout_s
        while not self._failure and not stop() and time.monotonic() < deadline:
            try:
                self._producer.flush(timeout=_STEP_S)
                break
            except self._kafka_error:
                continue
        # What is still queued fails now, and says so by its errback.
        self._producer.close(timeout=_STEP_S)

    def tally(self, topic: str) -> Tally:
        """Counts by partition."""
        return Tally(dict(self._handed[topic]), dict(self._failed[topic]), None)

    def _note_success(self, _metadata: Any) -> None:
        self._settled_count += 1

    def _note_failure(self, topic: str, partition: int, error: BaseException) -> None:
        self._settled_count += 1
        self._failed[topic][partition] += 1
        self._failure = self._failure or _reason(error)


def _reason(error: BaseException) -> str:
    return f"{' '.join(str(error).split())} ({type(error).__name__})"


def _translated(bootstrap_servers: str, settings: ProducerSettings) -> dict[str, Any]:
    timeout_ms = round(settings.delivery_timeout_s * 1000)
    return {
        "bootstrap_servers": bootstrap_servers.split(","),
        "client_id": "espbench-sender",
        "acks": "all" if settings.acks == "all" else int(settings.acks),
        "enable_idempotence": settings.idempotence,
        "linger_ms": settings.linger_ms,
        "batch_size": settings.batch_bytes,
        "compression_type": None if settings.compression == "none" else settings.compression,
        "request_timeout_ms": min(timeout_ms, 10_000),
        "delivery_timeout_ms": timeout_ms,
        "max_block_ms": min(timeout_ms, 10_000),
        "bootstrap_timeout_ms": 10_000,
    }
