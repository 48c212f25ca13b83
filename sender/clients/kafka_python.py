"""kafka-python: the portable client, a tenth as fast: every record is Python's work."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from espbench.errors import MissingExtra
from espbench.kafka import client as kafka
from sender.clients import Tally
from sender.settings import ProducerSettings

# How long a record may wait for room before the queue counts as full.
_ROOM_MS = 1
_STEP_S = 0.1
_TYPICAL_RECORD_BYTES = 256


class KafkaPythonClient:
    """Sends by kafka-python. It does not tell how often it sent a record again."""

    def __init__(self, bootstrap_servers: str, settings: ProducerSettings) -> None:
        try:
            from kafka import KafkaProducer  # noqa: PLC0415 - an extra
            from kafka.errors import KafkaError, KafkaTimeoutError  # noqa: PLC0415 - likewise
        except ImportError as error:
            raise MissingExtra("kafka-python", "kafka") from error
        self._bootstrap_servers = bootstrap_servers
        self._kafka_error = KafkaError
        self._full = KafkaTimeoutError
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
        """Hand values over one by one, until the buffer is full."""
        failed = partial(self._note_failure, topic, partition)
        for position, value in enumerate(values):
            try:
                future = self._producer.send(topic, value, partition=partition)
            except self._full:
                return position
            except self._kafka_error as error:
                failed(error)
            else:
                future.add_errback(failed)
            self._handed[topic][partition] += 1
        return len(values)

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

    def _note_failure(self, topic: str, partition: int, error: BaseException) -> None:
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
        "buffer_memory": settings.queue_records * _TYPICAL_RECORD_BYTES,
        "max_block_ms": _ROOM_MS,
    }
