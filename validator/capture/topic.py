"""One topic to one Parquet file: what it held when the capture began, all of it or marked."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from espbench.errors import ServiceError
from espbench.kafka import client as kafka
from espbench.kafka.admin import KafkaAdmin, OffsetRange, no_topic

SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
# Without any record for so long, the rest is not waited for.
IDLE_S = 20.0
_BATCH = 50_000


@dataclass(frozen=True, slots=True)
class CapturedTopic:
    """What `capture.json` says of a topic."""

    name: str
    role: str
    file: str
    timestamp_type: str
    complete: bool
    partitions: list[dict[str, Any]]
    records: int


def capture_topic(
    admin: KafkaAdmin, name: str, role: str, directory: Path, progress: Callable[[int], Any]
) -> CapturedTopic:
    """Read a topic from its first to its present last record into `<name>.parquet`.

    Records that come later are left out. Complete means: from offset 0 to the end that stood at
    the start, nothing cut by retention, nothing waited for in vain.
    """
    described = admin.describe([name]).get(name)
    if described is None:
        raise no_topic(name)
    ranges = admin.offsets(name)
    leaders = {each.partition: each.leader for each in described.partitions}
    file = f"{name}.parquet"
    with pq.ParquetWriter(directory / file, SCHEMA, compression="zstd") as writer:
        records, missing = _copy(admin.bootstrap_servers, name, ranges, writer, progress)
    from_the_start = all(each.begin == 0 for each in ranges)
    return CapturedTopic(
        name=name,
        role=role,
        file=file,
        timestamp_type=admin.timestamp_type(name),
        complete=not missing and from_the_start,
        partitions=[
            {
                "partition": each.partition,
                "begin": each.begin,
                "end": each.end,
                "leader": leaders[each.partition],
            }
            for each in ranges
        ],
        records=records,
    )


def _copy(
    bootstrap_servers: str,
    name: str,
    ranges: list[OffsetRange],
    writer: pq.ParquetWriter,
    progress: Callable[[int], Any],
) -> tuple[int, set[int]]:
    """Copy the ranges; how many records came, and the partitions that did not come to their end."""
    library = kafka.library()
    ends = {each.partition: each.end for each in ranges if each.count}
    if not ends:
        return 0, set()
    consumer = library.Consumer(_settings(bootstrap_servers), logger=kafka.logger())
    try:
        consumer.assign(
            [library.TopicPartition(name, each.partition, each.begin) for each in ranges]
        )
        records, heard = 0, time.monotonic()
        while ends and time.monotonic() - heard < IDLE_S:
            messages = consumer.consume(_BATCH, timeout=0.5)
            if messages:
                heard = time.monotonic()
            batch = _wanted(library, messages, ends)
            if batch.num_rows:
                writer.write_batch(batch)
                records += batch.num_rows
                progress(records)
    except library.KafkaException as error:
        raise ServiceError(
            f"reading the topic {name} failed: {kafka.reason(error)}", "is the broker still there?"
        ) from error
    finally:
        consumer.close()
    return records, set(ends)


def _wanted(library: Any, messages: list[Any], ends: dict[int, int]) -> pa.RecordBatch:
    """The records below the ends, as a batch; partitions that came to their end leave `ends`."""
    good = []
    finished = set()
    for message in messages:
        partition, error = message.partition(), message.error()
        if error is not None:
            if error.code() == library.KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                # Ends of transactions take offsets too: the end is reached without a record.
                finished.add(partition)
            elif not error.retriable():
                raise library.KafkaException(error)
        elif partition in ends and message.offset() < ends[partition]:
            good.append(message)
            if message.offset() == ends[partition] - 1:
                finished.add(partition)
    for partition in finished:
        ends.pop(partition, None)
    return pa.record_batch(
        [
            pa.array([message.partition() for message in good], pa.int32()),
            pa.array([message.offset() for message in good], pa.int64()),
            pa.array([message.timestamp()[1] for message in good], pa.int64()),
            pa.array([message.key() for message in good], pa.binary()),
            pa.array([message.value() for message in good], pa.binary()),
        ],
        schema=SCHEMA,
    )


def _settings(bootstrap_servers: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "espbench-capture",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        # What a transaction took back was never said.
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 50,
        "queued.max.messages.kbytes": 131_072,
    }
