"""One topic to one Parquet file: what it held when the capture began, all of it or marked."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from espbench.errors import ServiceError
from espbench.kafka import client as kafka
from espbench.kafka.admin import KafkaAdmin, no_topic
from espbench.kafka.security import login
from validator.capture import unfinished
from validator.records import Bools, Ints

SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
LOG_APPEND_TIME = "LogAppendTime"
# Without progress for so long, the rest is not waited for.
IDLE_S = 20.0
_BATCH = 20_000
# What the client library calls LogAppendTime.
_STAMPED_BY_BROKER = 2
_ROW_GROUP = 200_000


@dataclass(frozen=True, slots=True)
class CapturedTopic:
    """What `capture.json` says of a topic."""

    name: str
    role: str
    file: str
    timestamp_type: str
    complete: bool
    transactional: bool
    partitions: list[dict[str, Any]]
    records: int
    reasons: list[str]


@dataclass(slots=True)
class _Progress:
    """What is still to be read (partition to end offset), and what was seen on the way."""

    ends: dict[int, int]
    records: int = 0
    skipped: bool = False
    foreign_stamps: int = 0
    lost: dict[int, str] = field(default_factory=dict)
    following: dict[int, int] = field(default_factory=dict)


def capture_topic(
    admin: KafkaAdmin, name: str, role: str, directory: Path, progress: Callable[[int], Any]
) -> CapturedTopic:
    """Read a topic from its first to its present last record into `<name>.parquet`.

    Records that come later are left out. Complete means: from offset 0 to the end that stood at
    the start, nothing cut by retention, nothing waited for in vain. Where a complete range has
    offsets without records, these belong to transactions: the topic is then marked transactional.

    What an interrupted capture left in `directory` is gone on with.
    """
    described = admin.describe([name]).get(name)
    if described is None:
        raise no_topic(name)
    topic_id = described.topic_id
    if (done := unfinished.done_before(directory, name, topic_id)) is not None:
        progress(done["records"])
        return CapturedTopic(**done)
    ranges = admin.offsets(name)
    leaders = {each.partition: each.leader for each in described.partitions}
    earlier = unfinished.begun_before(directory, name, topic_id, ranges)
    if earlier is None:
        unfinished.begin(directory, name, topic_id, ranges)
    else:
        ranges = earlier.ranges
    file = f"{name}.parquet"
    seen = _Progress({each.partition: each.end for each in ranges if each.count})
    seen.following = {each.partition: each.begin for each in ranges}
    # Whatever ends this block, the file gets its end: it can be gone on with.
    with pq.ParquetWriter(
        directory / file,
        SCHEMA,
        compression="zstd",
        write_page_checksum=True,
        # Values do not repeat, and nobody asks for their extremes.
        use_dictionary=["partition"],
        write_statistics=["partition", "offset", "timestamp_ms"],
    ) as writer:
        try:
            if earlier is not None and earlier.file is not None:
                _again(earlier, seen, writer)
            _copy(admin.bootstrap_servers, name, seen, writer, progress)
        except BaseException:
            unfinished.begin(directory, name, topic_id, ranges, seen.foreign_stamps)
            raise
    if earlier is not None and earlier.file is not None:
        earlier.file.unlink()
    reasons = [
        f"partition {each.partition} begins at offset {each.begin}: what was before is gone"
        for each in ranges
        if each.begin
    ]
    reasons += [f"partition {number}: {why}" for number, why in sorted(seen.lost.items())]
    configured = admin.timestamp_type(name)
    if configured == LOG_APPEND_TIME and seen.foreign_stamps:
        reasons.append(f"{seen.foreign_stamps} records are not stamped by {LOG_APPEND_TIME}")
        configured = "mixed"
    topic = CapturedTopic(
        name=name,
        role=role,
        file=file,
        timestamp_type=configured,
        complete=not seen.lost and all(each.begin == 0 for each in ranges),
        transactional=seen.skipped,
        partitions=[
            {
                "partition": each.partition,
                "begin": each.begin,
                "end": each.end,
                "leader": leaders[each.partition],
            }
            for each in ranges
        ],
        records=seen.records,
        reasons=reasons,
    )
    unfinished.finish(directory, name, topic_id, topic)
    return topic


def _again(earlier: unfinished.Begun, seen: _Progress, writer: pq.ParquetWriter) -> None:
    """Copy what was read earlier; how far that is, the records themselves tell."""
    assert earlier.file is not None  # noqa: S101 - looked at by the caller
    seen.foreign_stamps = earlier.foreign_stamps
    for batch in unfinished.records_of(earlier.file):
        partition, offset = (np.asarray(batch.column(name)) for name in ("partition", "offset"))
        for number in np.unique(partition).tolist():
            if number in seen.ends:
                _advance(seen, number, partition == number, offset)
        writer.write_table(pa.Table.from_batches([batch]))
        seen.records += batch.num_rows


def _copy(
    bootstrap_servers: str,
    name: str,
    seen: _Progress,
    writer: pq.ParquetWriter,
    progress: Callable[[int], Any],
) -> None:
    """Copy what is left of the ranges as far as it comes."""
    library = kafka.library()
    if not seen.ends:
        return
    consumer = library.Consumer(_settings(bootstrap_servers), logger=kafka.logger())
    rows = _Rows(writer)
    try:
        consumer.assign(
            [
                library.TopicPartition(name, partition, seen.following[partition])
                for partition in seen.ends
            ]
        )
        heard = time.monotonic()
        while seen.ends and time.monotonic() - heard < IDLE_S:
            messages = consumer.consume(_BATCH, timeout=0.5)
            before = (seen.records, len(seen.ends))
            rows.add(_wanted(library, messages, seen))
            if (seen.records, len(seen.ends)) != before:
                heard = time.monotonic()
                progress(seen.records)
        rows.flush()
    except library.KafkaException as error:
        raise ServiceError(
            f"reading the topic {name} failed: {kafka.reason(error)}", "is the broker still there?"
        ) from error
    finally:
        consumer.close()
    for partition, end in seen.ends.items():
        reached = seen.following[partition]
        seen.lost[partition] = f"nothing came of offsets {reached} to {end - 1} for {IDLE_S:.0f} s"


def _wanted(library: Any, messages: list[Any], seen: _Progress) -> pa.RecordBatch | None:
    """The records below the ends; partitions that came to their end leave `seen.ends`."""
    records = [message for message in messages if message.error() is None]
    batch = _batch(records, seen) if records else None
    # After the records: an end of a partition is told behind the last of them, in one answer.
    for message in messages:
        if message.error() is not None:
            _note_event(library, message.error(), message, seen)
    return batch


def _batch(records: list[Any], seen: _Progress) -> pa.RecordBatch:
    partition = np.array([record.partition() for record in records], dtype=np.int32)
    offset = np.array([record.offset() for record in records], dtype=np.int64)
    keep = np.zeros(len(records), dtype=np.bool_)
    for number in np.unique(partition).tolist():
        if number in seen.ends:
            keep |= _advance(seen, number, partition == number, offset)
    if not keep.all():
        records = [records[row] for row in np.flatnonzero(keep)]
    seen.records += len(records)
    stamps = [record.timestamp() for record in records]
    seen.foreign_stamps += sum(kind != _STAMPED_BY_BROKER for kind, _ in stamps)
    return pa.record_batch(
        [
            pa.array(partition[keep]),
            pa.array(offset[keep]),
            pa.array([stamp for _, stamp in stamps], pa.int64()),
            pa.array([record.key() for record in records], pa.binary()),
            pa.array([record.value() for record in records], pa.binary()),
        ],
        schema=SCHEMA,
    )


def _advance(seen: _Progress, number: int, here: Bools, offset: Ints) -> Bools:
    """Which records of a partition lie below its end; takes note of gaps and of the end."""
    end = seen.ends[number]
    wanted = here & (offset < end)
    offsets = offset[wanted]
    path = np.concatenate([[seen.following[number] - 1], offsets])
    seen.skipped |= bool((np.diff(path) != 1).any())
    seen.following[number] = int(path[-1]) + 1
    if offset[here][-1] >= end - 1:
        # A record beyond the end shows that nothing else was left before it.
        seen.skipped |= seen.following[number] != end
        del seen.ends[number]
    return wanted


def _note_event(library: Any, error: Any, message: Any, seen: _Progress) -> None:
    codes = library.KafkaError
    partition = message.partition()
    if error.code() == codes._PARTITION_EOF:  # noqa: SLF001 - its public name
        # The marks of transactions take offsets too, so that the end can come without a record.
        # An end before ours is that of an open transaction: what follows may still come.
        if partition in seen.ends and message.offset() >= seen.ends[partition]:
            seen.skipped |= seen.following[partition] != seen.ends[partition]
            del seen.ends[partition]
    elif error.code() in {codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE}:  # noqa: SLF001
        if seen.ends.pop(partition, None) is not None:
            seen.lost[partition] = "records were deleted while they were read"
    elif not error.retriable():
        raise library.KafkaException(error)


class _Rows:
    """Collects records and writes them in row groups, so that memory stays bounded."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._batches: list[pa.RecordBatch] = []
        self._count = 0

    def add(self, batch: pa.RecordBatch | None) -> None:
        """Take some records."""
        if batch is None:
            return
        self._batches.append(batch)
        self._count += batch.num_rows
        if self._count >= _ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what was collected."""
        batches, self._batches, self._count = self._batches, [], 0
        if batches:
            self._writer.write_table(pa.Table.from_batches(batches))


def _settings(bootstrap_servers: str) -> dict[str, Any]:
    return {
        **login(bootstrap_servers),
        "bootstrap.servers": str(bootstrap_servers),
        "group.id": "espbench-capture",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        # What a transaction took back was never said.
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 50,
        "fetch.message.max.bytes": 8 << 20,
        "queued.min.messages": 500_000,
        "queued.max.messages.kbytes": 131_072,
    }
