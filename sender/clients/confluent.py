"""confluent-kafka: the fast client. No Python runs per record between Kafka and us.

`produce_batch` takes a tick at once. `delivery.report.only.error` keeps the library from building
a Python object per acknowledged record, and costs nothing; a failed record does call back, so
`handed - failed` is exactly what was acknowledged.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from espbench.kafka import client as kafka
from espbench.kafka.security import login
from sender.clients import Tally
from sender.settings import ProducerSettings

_STATISTICS_MS = 500
# The statistics name every partition; beyond this many they would cost more than they tell.
_STATISTICS_PARTITIONS = 64
_STEP_S = 0.1


class ConfluentClient:
    """Sends by librdkafka."""

    def __init__(self, bootstrap_servers: str, settings: ProducerSettings, **extra: Any) -> None:
        self._library = kafka.library()
        self._bootstrap_servers = bootstrap_servers
        self._idempotent = settings.idempotence
        self._failed: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._handed: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._failure: str | None = None
        self._trouble = ""
        self._statistics: dict[str, Any] | None = None
        self._producer = self._library.Producer(
            {
                **_translated(settings),
                **login(bootstrap_servers),
                "bootstrap.servers": str(bootstrap_servers),
                "error_cb": self._note_trouble,
                "stats_cb": self._note_statistics,
                **extra,
            },
            logger=kafka.logger(),
        )

    def connect(self, topics: Sequence[str], timeout_s: float) -> None:
        """Learn the topics' leaders, and wait for the idempotent producer's id."""
        deadline = time.monotonic() + timeout_s
        try:
            for topic in topics:
                self._producer.list_topics(topic, timeout=timeout_s)
        except self._library.KafkaException as error:
            raise kafka.unreachable(self._bootstrap_servers, kafka.reason(error)) from error
        while not self._has_id() and time.monotonic() < deadline:
            self._producer.poll(_STEP_S)
        if not self._has_id():
            raise kafka.unreachable(self._bootstrap_servers, "no id for an idempotent producer")

    def hand(self, topic: str, partition: int, values: list[bytes]) -> int:
        """Hand values over; the queue takes the first ones and refuses the rest when full."""
        # The partition must be the call's: one inside a message's dict is ignored by the library.
        messages = [{"value": value} for value in values]
        taken: int = self._producer.produce_batch(
            topic, messages, partition=partition, on_delivery=self._note_failure
        )
        if taken < len(values):
            taken = self._sort_out(topic, partition, messages)
        self._handed[topic][partition] += taken
        return taken

    def serve(self) -> None:
        """Serve callbacks."""
        self._producer.poll(0)

    @property
    def failure(self) -> str | None:
        """Why the first record failed."""
        return self._failure

    def finish(self, timeout_s: float, stop: Callable[[], bool]) -> None:
        """Flush, or give up; then take the last statistics."""
        deadline = time.monotonic() + timeout_s
        while self._producer.flush(_STEP_S) and not self._failure and not stop():
            if time.monotonic() > deadline:
                break
        outstanding = len(self._producer)
        if outstanding:
            self._producer.purge()
            self._producer.flush(_STEP_S)
            return
        self._statistics = None
        deadline = time.monotonic() + 2 * _STATISTICS_MS / 1000
        while self._statistics is None and time.monotonic() < deadline and not stop():
            self._producer.poll(_STEP_S)

    def tally(self, topic: str) -> Tally:
        """Counts by partition; retried records as the statistics tell them."""
        return Tally(dict(self._handed[topic]), dict(self._failed[topic]), self._retried(topic))

    def _sort_out(self, topic: str, partition: int, messages: list[dict[str, Any]]) -> int:
        """How many were taken or failed for good; the rest found the queue full."""
        for position, message in enumerate(messages):
            error = message.get("_error")
            if error is None:
                continue
            if error.name() == "_QUEUE_FULL":
                return position
            self._failed[topic][partition] += 1
            self._failure = self._failure or kafka.reason(error)
        return len(messages)

    def _note_failure(self, error: Any, message: Any) -> None:
        if error is None:
            return
        self._failed[message.topic()][message.partition()] += 1
        if self._failure is None:
            self._failure = kafka.reason(error) + self._trouble

    def _note_trouble(self, error: Any) -> None:
        self._trouble = f"; before that: {kafka.reason(error)}"

    def _note_statistics(self, text: str) -> None:
        self._statistics = json.loads(text)

    def _has_id(self) -> bool:
        if not self._idempotent:
            return True
        state = (self._statistics or {}).get("eos", {}).get("idemp_state")
        return bool(state == "Assigned")

    def _retried(self, topic: str) -> int | None:
        if self._statistics is None or self._failed[topic].total():
            return None
        partitions = self._statistics.get("topics", {}).get(topic, {}).get("partitions", {})
        if len(partitions) > _STATISTICS_PARTITIONS:
            return None
        sent = sum(each["txmsgs"] for each in partitions.values())
        return max(0, int(sent) - self._handed[topic].total())


def _translated(settings: ProducerSettings) -> dict[str, Any]:
    timeout_ms = round(settings.delivery_timeout_s * 1000)
    return {
        "client.id": "espbench-sender",
        "acks": settings.acks,
        "enable.idempotence": settings.idempotence,
        "linger.ms": settings.linger_ms,
        "batch.size": settings.batch_bytes,
        "batch.num.messages": 100_000,
        "message.max.bytes": max(1_000_000, settings.batch_bytes),
        "compression.type": settings.compression,
        "message.timeout.ms": timeout_ms,
        "request.timeout.ms": min(timeout_ms, 10_000),
        "queue.buffering.max.messages": settings.queue_records,
        "queue.buffering.max.kbytes": settings.queue_bytes // 1024,
        "socket.nagle.disable": True,
        "reconnect.backoff.max.ms": 500,
        "delivery.report.only.error": True,
        "statistics.interval.ms": _STATISTICS_MS,
    }
