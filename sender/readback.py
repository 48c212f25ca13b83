"""How late the broker stamped the records: LogAppendTime - due, from the topic itself.

Up to `MAX_RECORDS` records are read, all of them where the topic holds no more, else blocks spread
evenly over every partition. The exact figure over everything is the validator's; this one tells
at once whether the load was good.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from espbench.kafka import client as kafka
from espbench.kafka.admin import OffsetRange
from espbench.kafka.security import login
from sender.lateness import LatenessHistogram

MAX_RECORDS = 200_000
_BLOCK = 2_000
_TIMEOUT_S = 20.0
_ACCOUNT_TIMEOUT_S = 120.0


def read_back(
    bootstrap_servers: str, topic: str, ranges: Sequence[OffsetRange], *, limit: int = MAX_RECORDS
) -> LatenessHistogram | None:
    """The lateness of what stands in the topic; None where it cannot be read or is not stamped."""
    library = kafka.library()
    deadline = time.monotonic() + _TIMEOUT_S
    histogram = LatenessHistogram()

    def note(values: list[bytes], stamps_ms: npt.NDArray[np.int64]) -> None:
        histogram.add((stamps_ms - _numbers(values, 1)) * 1_000_000)

    try:
        with _consumer(library, bootstrap_servers) as consumer:
            for block in _blocks(ranges, limit):
                if not _read_block(library, consumer, topic, block, note, deadline):
                    return None
    except library.KafkaException:
        return None
    return histogram if histogram.n else None


@dataclass(frozen=True, slots=True)
class Account:
    """Which ids stand in the topic: every record that was handed over is in one of these counts.

    `present` ids are there, `missing` ones are not (the first of them is `first_missing`), and
    `duplicated` counts the copies beyond the first of an id.
    """

    present: int
    missing: int
    duplicated: int
    first_missing: int | None


def account(
    bootstrap_servers: str, topic: str, ranges: Sequence[OffsetRange], ids: npt.NDArray[np.int64]
) -> Account | None:
    """Count the ids in the topic against those that were handed over; None where it is unreadable.

    Reads everything, so it is for sends that went wrong.
    """
    library = kafka.library()
    deadline = time.monotonic() + _ACCOUNT_TIMEOUT_S
    found: list[npt.NDArray[np.int64]] = []
    try:
        with _consumer(library, bootstrap_servers) as consumer:
            for block in ranges:
                if not _read_block(
                    library,
                    consumer,
                    topic,
                    block,
                    lambda values, _stamps: found.append(_numbers(values, 0)),
                    deadline,
                ):
                    return None
    except library.KafkaException:
        return None
    seen = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
    distinct = np.unique(seen)
    missing = np.setdiff1d(ids, distinct, assume_unique=True)
    return Account(
        present=len(distinct),
        missing=len(missing),
        duplicated=len(seen) - len(distinct),
        first_missing=int(missing[0]) if len(missing) else None,
    )


@contextmanager
def _consumer(library: Any, bootstrap_servers: str) -> Iterator[Any]:
    consumer = library.Consumer(
        {
            **login(bootstrap_servers),
            "bootstrap.servers": str(bootstrap_servers),
            "group.id": "espbench-sender-read-back",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "fetch.wait.max.ms": 10,
            "queued.max.messages.kbytes": 16_384,
        },
        logger=kafka.logger(),
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _numbers(values: list[bytes], field: int) -> npt.NDArray[np.int64]:
    """The id (0) or the `due_ms` (1) of messages."""
    return np.array([int(value.split(b";", 2)[field]) for value in values], dtype=np.int64)


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
    note: Callable[[list[bytes], npt.NDArray[np.int64]], None],
    deadline: float,
) -> bool:
    """Read a block and `note` its values and stamps; False where that cannot be done in time."""
    if not block.count:
        return True
    consumer.assign([library.TopicPartition(topic, block.partition, block.begin)])
    position = block.begin
    while position < block.end:
        if time.monotonic() > deadline:
            return False
        messages = consumer.consume(min(10_000, block.end - position), timeout=1.0)
        stamped, values = [], []
        for message in messages:
            if message.error():
                return False
            kind, stamp_ms = message.timestamp()
            if kind != library.TIMESTAMP_LOG_APPEND_TIME:
                return False
            stamped.append(stamp_ms)
            values.append(message.value())
        if messages:
            position = messages[-1].offset() + 1
            note(values, np.array(stamped, dtype=np.int64))
    return True
