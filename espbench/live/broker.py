"""What the topics tell while a query runs: how much was sent, how much answered, how fast.

Cheap by design, for the machine is being measured: one look asks for end offsets and reads a
handful of records, whatever the rate. Nothing is committed, nothing is made.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from espbench.errors import UsageError
from espbench.kafka import client
from espbench.kafka.admin import KafkaAdmin, OffsetRange
from espbench.kafka.security import login
from espbench.live.files import Batch
from espbench.live.samples import Input, due_ms, input_of, window_end_ms
from espbench.names import Query, topics_of

# Answers drawn at random from those that are new since the last look.
DRAWN = 5
# Around a window's end: its last update, or its only answer.
_BLOCK = 20
_PATIENCE_S = 0.5
_BROKER_TIMEOUT_S = 5.0


@dataclass(slots=True)
class Seen:
    """One look at the topics of a query; counts are since the query's begin.

    `samples` are (stamp of the answer in epoch ms, latency in ms).
    """

    time_ms: float
    sent: dict[int, int] = field(default_factory=dict)
    answers: int | None = None
    start_ms: float | None = None
    samples: list[tuple[float, float]] = field(default_factory=list)
    # The newest answer was about an input before this offset, by source topic.
    answered_before: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Message:
    offset: int
    stamp_ms: float
    key: bytes | None
    value: bytes


class Tail:
    """Looks at the topics of one query; a context manager that lets the connections go."""

    def __init__(self, address: str, query: Query, prefix: str, run: str, *, seed: int = 0) -> None:
        self._library = client.library()
        self._address = address
        self._query = query
        self._partitions = 1
        self._topics = topics_of(prefix, run, query)
        self._rng = np.random.default_rng(seed)
        self._answered: list[OffsetRange] | None = None
        self._start_ms: float | None = None
        self._admin = KafkaAdmin(address, timeout_s=_BROKER_TIMEOUT_S)
        self._consumer = self._library.Consumer(
            {
                **login(address),
                "bootstrap.servers": str(address),
                "group.id": "espbench-watch",
                "client.id": "espbench-watch",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                # Records one by one: nothing is to be fetched ahead.
                "fetch.wait.max.ms": 10,
                "fetch.message.max.bytes": 16_384,
                "queued.max.messages.kbytes": 256,
                # Else a read waits up to a second for what an earlier one had queued.
                "fetch.queue.backoff.ms": 5,
            },
            logger=client.logger(),
        )

    def close(self) -> None:
        """Let the connections go."""
        self._consumer.close()

    def look(self, batches: Sequence[Batch]) -> Seen | None:
        """The topics now; None before they exist. `batches` are those since the last look.

        Raises `ServiceError` where the broker does not answer.
        """
        with suppress(UsageError):  # not made yet, or deleted by now
            return self._look(batches)
        return None

    def _look(self, batches: Sequence[Batch]) -> Seen:
        seen = Seen(time.time() * 1_000)
        for stream in self._query.streams:
            ranges = self._admin.offsets(self._source(stream))
            seen.sent[stream] = sum(each.count for each in ranges)
            self._partitions = len(ranges)
        seen.start_ms = self._start(seen)
        if "sink" in self._topics:
            ends = self._admin.offsets(self._topics["sink"])
            seen.answers = sum(each.count for each in ends)
            self._sample_answers(seen, ends)
        else:
            self._sample_batches(seen, batches)
        return seen

    def _source(self, stream: int) -> str:
        return self._topics[f"source-{stream}"]

    def _start(self, seen: Seen) -> float | None:
        """When the schedule began: the due time of the first record."""
        if self._start_ms is None and any(seen.sent.values()):
            stream = next(each for each in self._query.streams if seen.sent[each])
            first = self._read(self._source(stream), 0, 0)
            self._start_ms = due_ms(first[0].value) if first else None
        return self._start_ms

    def _sample_answers(self, seen: Seen, ends: list[OffsetRange]) -> None:
        before = self._answered or [OffsetRange(each.partition, 0, each.begin) for each in ends]
        known = {each.partition: each.end for each in before}
        self._answered = ends
        new = [
            OffsetRange(each.partition, known.get(each.partition, each.begin), each.end)
            for each in ends
        ]
        new = [each for each in new if each.count > 0]
        if not new:
            return
        if self._query.name == "check-sensor-status":
            self._sample_window(seen, new[0])
            return
        for partition, offset in self._draw(new):
            self._sample(seen, partition, offset)
        # The newest answer tells how far the query has come.
        self._sample(seen, new[0].partition, new[0].end - 1, only_place=True)

    def _draw(self, new: list[OffsetRange]) -> list[tuple[int, int]]:
        """Different new answers, every one as likely as any other."""
        total = sum(each.count for each in new)
        places = self._rng.choice(total, size=min(DRAWN, total), replace=False)
        edges = np.cumsum([each.count for each in new])
        found = []
        for place in sorted(int(each) for each in places):
            at = int(np.searchsorted(edges, place, side="right"))
            begun = int(edges[at]) - new[at].count
            found.append((new[at].partition, new[at].begin + place - begun))
        return found

    def _sample(self, seen: Seen, partition: int, offset: int, *, only_place: bool = False) -> None:
        answers = self._read(self._topics["sink"], partition, offset)
        if not answers:
            return
        source = input_of(self._query, answers[0].value, self._partitions)
        if source is None:
            return
        topic = self._source(source.stream)
        if only_place:
            seen.answered_before[topic] = (source.offset + 1) * self._partitions
            return
        stamp_ms = self._stamp(topic, source, answers[0].value)
        if stamp_ms is not None:
            seen.samples.append((answers[0].stamp_ms, answers[0].stamp_ms - stamp_ms))

    def _stamp(self, topic: str, source: Input, answer: bytes) -> float | None:
        """The input's stamp, if it stands where it should."""
        found = self._read(topic, source.partition, source.offset)
        if not found:
            return None
        own = found[0].value.split(b";", 1)[0]
        whole = self._query.name != "determine-outliers"
        return found[0].stamp_ms if not whole or own == answer.split(b";", 1)[0] else None

    def _sample_window(self, seen: Seen, new: OffsetRange) -> None:
        """The window before the newest one: its last answer after its end."""
        sink = self._topics["sink"]
        newest = self._read(sink, new.partition, new.end - 1)
        end_ms = window_end_ms(newest[0].key) if newest else None
        if end_ms is None:
            return
        wanted = end_ms - 1_000
        place = self._library.TopicPartition(sink, new.partition, wanted)
        try:
            found = self._consumer.offsets_for_times([place], timeout=_PATIENCE_S)
        except self._library.KafkaException as error:
            raise client.unreachable(self._address, client.reason(error)) from error
        first = found[0].offset if found else -1
        if first < 0:
            return
        block = self._read(sink, new.partition, first, min(_BLOCK, new.end - first))
        own = [each for each in block if window_end_ms(each.key) == wanted]
        if own:
            seen.samples.append((own[-1].stamp_ms, own[-1].stamp_ms - wanted))

    def _sample_batches(self, seen: Seen, batches: Sequence[Batch]) -> None:
        """Query 5 writes no topic: an input counts as answered at the end of its batch."""
        topic = self._source(self._query.streams[0])
        rows = np.array([batch.rows for batch in batches], dtype=np.float64)
        if not len(rows):
            return
        for which in self._rng.choice(len(rows), size=DRAWN, p=rows / rows.sum()):
            batch = batches[int(which)]
            ends = batch.end.get(topic, {})
            begins = batch.begin.get(topic, {})
            partition = int(self._rng.choice(sorted(ends))) if ends else 0
            begin, end = begins.get(partition, 0), ends.get(partition, 0)
            if end > begin:
                found = self._read(topic, partition, int(self._rng.integers(begin, end)))
                if found:
                    seen.samples.append((batch.end_ms, batch.end_ms - found[0].stamp_ms))

    def _read(self, topic: str, partition: int, offset: int, count: int = 1) -> list[_Message]:
        """Up to so many records from an offset on; fewer where they do not come at once."""
        self._consumer.assign([self._library.TopicPartition(topic, partition, offset)])
        found: list[_Message] = []
        deadline = time.monotonic() + _PATIENCE_S
        while len(found) < count and time.monotonic() < deadline:
            for message in self._consumer.consume(count - len(found), timeout=0.1):
                if message.error():
                    deadline = 0.0
                    break
                found.append(
                    _Message(
                        message.offset(),
                        float(message.timestamp()[1]),
                        message.key(),
                        message.value() or b"",
                    )
                )
        # Between two looks nothing is fetched.
        self._consumer.unassign()
        return found
