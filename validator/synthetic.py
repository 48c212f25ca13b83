"""Small made-up captures, record by record: for tests, examples and tries with other tools.

Everything here is plain Python on purpose. It knows the specification by itself and uses none of
the oracles, so that it can be held against them.
"""

import gzip
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

START_MS = 1_700_000_000_000
# The backslash first, which is in all the others.
_SHORT = {b"\\": b"\\\\", b'"': b'\\"', b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t"}
_CONTROL = re.compile(rb"[\x00-\x1f]")
LOG_APPEND, CREATE = "logappend", "create"
TOPIC_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a topic."""

    partition: int
    offset: int
    timestamp_ms: int
    value: bytes | None
    key: bytes | None = None


@dataclass(slots=True)
class Topic:
    """The records of a topic, and what kcat says of their timestamps."""

    name: str
    records: list[Record] = field(default_factory=list)
    tstype: str = LOG_APPEND

    def add(
        self,
        timestamp_ms: int,
        value: bytes | None,
        partition: int = 0,
        key: bytes | None = None,
    ) -> None:
        """Append a record at the end of a partition."""
        offset = sum(record.partition == partition for record in self.records)
        self.records.append(Record(partition, offset, timestamp_ms, value, key))

    def renumbered(self) -> "Topic":
        """The same records in the order of the list, with offsets that run from 0."""
        topic = Topic(self.name, [], self.tstype)
        following: dict[int, int] = {}
        for record in self.records:
            offset = following.get(record.partition, 0)
            following[record.partition] = offset + 1
            topic.records.append(replace(record, offset=offset))
        return topic

    def json_lines(self) -> bytes:
        """As `kcat -C -J` writes the topic."""
        return b"".join(self._line(record) + b"\n" for record in self.records)

    def _line(self, record: Record) -> bytes:
        head = {"topic": self.name, "partition": record.partition, "offset": record.offset}
        stamp = {"tstype": self.tstype, "ts": record.timestamp_ms, "broker": 1}
        begin = json.dumps(head | stamp, separators=(",", ":")).encode()[:-1]
        key, value = _json_bytes(record.key), _json_bytes(record.value)
        return begin + b',"key":' + key + b',"payload":' + value + b"}"

    def write_json_lines(self, path: Path, *, zipped: bool = False) -> Path:
        """Write a JSON Lines file."""
        content = self.json_lines()
        path.write_bytes(gzip.compress(content) if zipped else content)
        return path

    def write_parquet(self, path: Path) -> Path:
        """Write a Parquet file as a capture has it."""
        rows = self.records
        table = pa.table(
            {
                "partition": [row.partition for row in rows],
                "offset": [row.offset for row in rows],
                "timestamp_ms": [row.timestamp_ms for row in rows],
                "key": [row.key for row in rows],
                "value": [row.value for row in rows],
            },
            schema=TOPIC_SCHEMA,
        )
        pq.write_table(table, path)
        return path


def _json_bytes(value: bytes | None) -> bytes:
    """A JSON string the way kcat writes it: bytes beyond ASCII stay as they are."""
    if value is None:
        return b"null"
    shown = value
    for byte, escape in _SHORT.items():
        shown = shown.replace(byte, escape)
    return b'"' + _CONTROL.sub(lambda found: b"\\u%04x" % found[0][0], shown) + b'"'


def sensor_line(number: int, mf01: int, mf02: int, mf03: int, workplace: int = 1) -> str:
    """A sensor row: 56 columns and the workplace."""
    time = f"2012-02-22T16:46:{number % 60:02d}.{number % 10_000_000:07d}+00:00"
    head = [time, str(number), str(mf01), str(mf02), str(mf03), "0071", "0193", "0150"]
    return "\t".join([*head, *["0000"] * 4, *["0", "1"] * 22, str(workplace)])


@dataclass(frozen=True, slots=True)
class Plan:
    """What is made: how many records at what rate, the delay of the answers, and the odds."""

    records: int = 2_000
    rate: float = 50.0
    delay_ms: int = 20
    partitions: int = 1
    workplace: int = 1
    seed: int = 1
    error_share: float = 0.1


def source(plan: Plan, name: str = "espbench-test-1") -> Topic:
    """A sensor stream: record i is due at i/rate and arrives two milliseconds later."""
    random = Random(plan.seed)  # noqa: S311 - reproducible, not secret
    topic = Topic(name)
    following = [0] * plan.partitions
    for number in range(plan.records):
        high = random.random() < plan.error_share
        mf01 = random.randint(14_964, 21_000) if high else random.randint(13_000, 14_963)
        mf03 = (
            random.randint(7_000, 8_104) if random.random() < 0.1 else random.randint(8_105, 8_800)
        )
        line = sensor_line(number, mf01, random.randint(14_000, 15_000), mf03, plan.workplace)
        due_ms = START_MS + int(number * 1_000 / plan.rate)
        partition = number % plan.partitions
        value = f"{number};{due_ms};{line}".encode()
        topic.records.append(Record(partition, following[partition], due_ms + 2, value))
        following[partition] += 1
    return topic


def identity_sink(source_topic: Topic, plan: Plan, name: str = "espbench-test-identity") -> Topic:
    """What identity should answer."""
    return _answered(name, plan, ((record, record.value) for record in source_topic.records))


def errors_sink(
    source_topic: Topic, plan: Plan, name: str = "espbench-test-identify-errors"
) -> Topic:
    """What query 3 should answer."""
    return _answered(
        name,
        plan,
        (
            (record, f"{number};{line}".encode())
            for record, number, line in well_formed(source_topic)
            if int(line.split("\t")[2]) > 14_963
        ),
    )


def well_formed(topic: Topic) -> Iterable[tuple[Record, str, str]]:
    """Record, id and line of every well-formed sensor record."""
    for record in topic.records:
        try:
            number, due_ms, line = (record.value or b"").decode("utf-8").split(";", 2)
            columns = line.split("\t")
            for text in (number, due_ms, *columns[2:5], columns[56]):
                int(text)
        except (ValueError, IndexError):
            continue
        if len(columns) == 57:
            yield record, number, line


def _answered(name: str, plan: Plan, answers: Iterable[tuple[Record, bytes | None]]) -> Topic:
    topic = Topic(name)
    following: dict[int, int] = {}
    for record, value in answers:
        offset = following.get(record.partition, 0)
        following[record.partition] = offset + 1
        when = record.timestamp_ms + plan.delay_ms
        topic.records.append(Record(record.partition, offset, when, value))
    return topic


def write_capture(directory: Path, query: str, topics: dict[str, Topic], **changes: Any) -> Path:
    """A capture directory; `topics` by role, `changes` go into `capture.json`."""
    directory.mkdir(parents=True, exist_ok=True)
    entries = []
    for role, topic in topics.items():
        topic.write_parquet(directory / f"{topic.name}.parquet")
        partitions = sorted({record.partition for record in topic.records} or {0})
        entries.append(
            {
                "name": topic.name,
                "role": role,
                "file": f"{topic.name}.parquet",
                "timestamp_type": "LogAppendTime" if topic.tstype == LOG_APPEND else "CreateTime",
                "complete": True,
                "partitions": [
                    {
                        "partition": partition,
                        "begin": 0,
                        "end": 1
                        + max(
                            (r.offset for r in topic.records if r.partition == partition),
                            default=-1,
                        ),
                        "leader": 1,
                    }
                    for partition in partitions
                ],
            }
        )
    document: dict[str, Any] = {
        "format": "espbench-capture/1",
        "run": "test",
        "query": query,
        "prefix": "espbench",
        "guarantee": "at-least-once",
        "rate": None,
        "duration": None,
        "warmup": 10,
        "topics": entries,
        "tables": [],
        "sender_report": None,
        "freshness": 10,
        "clocks": [],
        "versions": {},
    }
    (directory / "capture.json").write_text(json.dumps(document | changes), encoding="utf-8")
    return directory
