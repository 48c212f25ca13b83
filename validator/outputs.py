"""What the system under test wrote into the sink topic."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from validator.evidence import Evidence
from validator.records import RawBytes, take_apart
from validator.streams import MF01, MF03, SENSOR_COLUMNS, WORKPLACE, Columns
from validator.topics import Topic, TopicBuilder, TopicFile, read_batches

Reads = Callable[[pa.Array], Columns]


@dataclass(frozen=True, slots=True)
class Outputs:
    """All records of the sink, as columns of equal length; `values` and `keys` are Arrow binary."""

    topic: Topic
    columns: Columns
    values: pa.ChunkedArray
    keys: pa.ChunkedArray

    def __len__(self) -> int:
        return len(self.topic)


def sensor_outputs(fields: int) -> Reads:
    """How to read outputs that hold a sensor line after `fields` fields, the first being the id."""

    def read(values: pa.Array) -> Columns:
        return identity_columns(RawBytes.of(values), fields)

    return read


def identity_columns(raw: RawBytes, fields: int) -> Columns:
    """The identity of outputs, (column 57, id), and the columns that conditions look at.

    Without an identity an output is malformed.
    """
    parts = take_apart(raw, fields=fields, columns=SENSOR_COLUMNS)
    number, has_id = parts.whole(0)
    workplace, has_workplace = parts.column(WORKPLACE)
    mf01, _ = parts.column(MF01)
    mf03, _ = parts.column(MF03)
    return {
        "id": number,
        "workplace": workplace,
        "has_identity": has_id & has_workplace,
        "mf01": mf01,
        "mf03": mf03,
    }


def read_outputs(file: TopicFile, reads: Reads) -> Outputs:
    """Read the sink topic."""
    evidence = Evidence(file.shown)
    builder = TopicBuilder(file, evidence)
    nothing = pa.array([], type=pa.binary())
    parts: list[Columns] = [reads(nothing)]
    values, keys = [nothing], [nothing]
    for batch in read_batches(file, evidence):
        builder.add(batch)
        parts.append(reads(batch.value))
        values.append(batch.value)
        keys.append(batch.key)
    topic, keep = builder.finish()
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    all_values = pa.chunked_array(values, type=pa.binary())
    all_keys = pa.chunked_array(keys, type=pa.binary())
    if keep is not None:
        columns = {name: column[keep] for name, column in columns.items()}
        all_values = all_values.filter(pa.array(keep))
        all_keys = all_keys.filter(pa.array(keep))
    return Outputs(topic, columns, all_values, all_keys)
