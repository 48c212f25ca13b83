"""How late the broker stamped the records: LogAppendTime - due, from the topic itself.

Up to `MAX_RECORDS` records are read, all of them where the topic holds no more, else blocks spread
evenly over every partition. The exact figure over everything is the validator's; this one tells
at once whether the load was good.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from espbench.kafka import client as kafka
from espbench.kafka.admin import OffsetRange
from sender.lateness import LatenessHistogram

MAX_RECORDS = 200_000
_BLOCK = 2_000
_TIMEOUT_S = 20.0


def read_back(
    bootstrap_servers: str, topic: str, ranges: Sequence[OffsetRange], *, limit: int = MAX_RECORDS
) -> LatenessHistogram | None:
    """The lateness of what stands in the topic; None where it cannot be read or is not stamped."""
    library = kafka.library()
    consumer = library.Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "espbench-sender-read-back",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "fetch.wait.max.ms": 10,
            "queued.max.messages.kbytes": 16_384,
        },
        logger=kafka.logger(),
    )
    deadline = time.monotonic() + _TIMEOUT_S
    histogram = LatenessHistogram()
    try:
        for block in _blocks(ranges, limit):
            if not _read_block(library, consumer, topic, block, histogram, deadline):
                return None
    except library.KafkaException:
        return None
    finally:
        consumer.close()
    return histogram if histogram.n else None


def _blocks(ranges: Sequence[OffsetRange], limit: int) -> Iterator[OffsetRange]:
    """What to read: everything, or evenly spaced blocks of it."""
    total = sum(each.count for each in ranges)
    for each in ranges:
        if total <= limit:
            yield each
            continue
        share = max(1, round(limit * each.count / total / _BLOCK))
        for begin in np.linspace(each.begin, max(each.begin, each.end - _BLOCK), share):
            yield OffsetRange(each.partition, int(begin), min(int(begin) + _BLOCK, each.end))


def _read_block(
    library: Any,
    consumer: Any,
    topic: str,
    block: OffsetRange,
    histogram: LatenessHistogram,
    deadline: float,
) -> bool:
    if not block.count:
        return True
    consumer.assign([library.TopicPartition(topic, block.partition, block.begin)])
    position = block.begin
    while position < block.end:
        if time.monotonic() > deadline:
            return False
        messages = consumer.consume(min(10_000, block.end - position), timeout=1.0)
        stamped, due = [], []
        for message in messages:
            if message.error():
                return False
            kind, stamp_ms = message.timestamp()
            if kind != library.TIMESTAMP_LOG_APPEND_TIME:
                return False
            stamped.append(stamp_ms)
            due.append(int(message.value().split(b";", 2)[1]))
        if messages:
            position = messages[-1].offset() + 1
            histogram.add((np.array(stamped) - np.array(due)) * 1_000_000)
    return True
