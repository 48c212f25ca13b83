"""What the system under test wrote into the sink topic."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from validator.evidence import Evidence
from validator.records import RawBytes, take_apart
from validator.streams import MF01, MF03, SENSOR_COLUMNS, WORKPLACE, Columns, Stream
from validator.texts import flat
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


def identity_columns(raw: RawBytes, fields: int) -> dict[str, Any]:
    """The identity of outputs, (column 57, id), and the columns that conditions look at.

    Without an identity an output is malformed.
    """
    parts = take_apart(raw, fields=fields, columns=SENSOR_COLUMNS)
    number, has_id = parts.whole(0)
    workplace, has_workplace = parts.column(WORKPLACE)
    found = {"id": number, "workplace": workplace, "has_identity": has_id & has_workplace}
    if fields == 1:
        found["mf01"], _ = parts.column(MF01)
        found["mf03"], _ = parts.column(MF03)
    return found


class _Echo:
    """Outputs that are the next inputs, byte by byte, need neither be taken apart nor be kept."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._columns = {name: stream[name] for name in ("id", "workplace", "has_identity")}
        self._next = 0

    def take(self, values: pa.Array) -> tuple[Columns, list[pa.Array]] | None:
        """Columns and values from the source; None where these are not the next inputs."""
        begin, end = self._next, self._next + len(values)
        inputs = self._stream.kept_values.slice(begin, len(values))
        if len(inputs) < len(values) or not flat(inputs).equals(values):
            return None
        self._next = end
        columns = {name: column[begin:end] for name, column in self._columns.items()}
        return columns, inputs.chunks

    def resume(self, columns: Columns) -> None:
        """After outputs that were no echo in order: go on behind the input of the last one."""
        known = np.flatnonzero(columns["has_identity"])
        if len(known):
            behind = np.flatnonzero(self._columns["id"] == columns["id"][known[-1]])
            self._next = int(behind[0]) + 1 if len(behind) else self._next


def read_outputs(file: TopicFile, reads: Reads, echo: Stream | None = None) -> Outputs:
    """Read the sink topic; `echo` is the source where outputs are inputs unchanged."""
    evidence = Evidence(file.shown)
    builder = TopicBuilder(file, evidence)
    nothing = pa.array([], type=pa.binary())
    parts: list[Columns] = [reads(nothing)]
    values, keys = [nothing], [nothing]
    echoed = _Echo(echo) if echo is not None else None
    for batch in read_batches(file, evidence):
        builder.add(batch)
        keys.append(batch.key)
        same = echoed.take(batch.value) if echoed else None
        if same is not None:
            parts.append(same[0])
            values.extend(same[1])
            continue
        parts.append(reads(batch.value))
        values.append(batch.value)
        if echoed:
            echoed.resume(parts[-1])
    topic, keep = builder.finish()
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    all_values = pa.chunked_array(values, type=pa.binary())
    all_keys = pa.chunked_array(keys, type=pa.binary())
    if keep is not None:
        columns = {name: column[keep] for name, column in columns.items()}
        all_values = all_values.filter(pa.array(keep))
        all_keys = all_keys.filter(pa.array(keep))
    return Outputs(topic, columns, all_values, all_keys)
