"""What the system under test wrote into the sink topic."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from validator.ahead import ahead
from validator.batches import Batch
from validator.evidence import Evidence
from validator.fingerprints import id_and_line
from validator.packed import PackedColumns
from validator.records import RawBytes, is_utf8, take_apart
from validator.streams import MF01, MF03, SENSOR_COLUMNS, WORKPLACE, Columns
from validator.topics import Topic, TopicBuilder, TopicFile, read_batches

# Keys and values to columns.
Reads = Callable[[pa.Array, pa.Array], Columns]


@dataclass(frozen=True, slots=True)
class Outputs:
    """All records of the sink as columns of equal length, packed; keys and values are not held."""

    topic: Topic
    columns: PackedColumns

    def __len__(self) -> int:
        return len(self.topic)


def sensor_output(_keys: pa.Array, values: pa.Array) -> Columns:
    """Read outputs `<id>;<line>`."""
    raw = RawBytes.of(values)
    return identity_columns(raw, fields=1) | {"text": id_and_line(values, fields=1)}


def identity_columns(raw: RawBytes, fields: int) -> dict[str, Any]:
    """The identity of outputs, (column 57, id), and the columns that conditions look at.

    What is not UTF-8 has no identity, and an output without one is malformed. `fields` stand before
    the line, the first is the id.
    """
    parts = take_apart(raw, fields=fields, columns=SENSOR_COLUMNS)
    number, has_id = parts.whole(0)
    workplace, has_workplace = parts.column(WORKPLACE)
    named = has_id & has_workplace & is_utf8(raw)
    found = {"id": number, "workplace": workplace, "has_identity": named}
    if fields == 1:
        found["mf01"], _ = parts.column(MF01)
        found["mf03"], _ = parts.column(MF03)
    return found


def read_outputs(file: TopicFile, reads: Reads) -> Outputs:
    """Read the sink topic."""
    evidence = Evidence(file.shown)
    builder = TopicBuilder(file, evidence)
    nothing = pa.array([], type=pa.binary())
    columns = PackedColumns.like(reads(nothing, nothing))

    def read(batch: Batch) -> Columns:
        return reads(batch.key, batch.value)

    for batch, found in ahead(read_batches(file, evidence), read):
        builder.add(batch)
        columns.add(found)
    topic, keep = builder.finish()
    return Outputs(topic, columns.only(keep))
