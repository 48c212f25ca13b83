"""The common form of captured records, whatever file they come from."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from validator.records import Ints

NO_TIMESTAMP = -1
# The year 5138: what lies beyond is no timestamp, and its microseconds have room in 64 bits.
LAST_TIMESTAMP_MS = 10**14
# Kafka numbers partitions by 32 bits.
LAST_PARTITION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Some records of a topic, in the order of the file.

    `timestamp_ms` is -1 where there is none; `stamped` says that every one of them is the broker's
    LogAppendTime as far as the file tells. `key` and `value` are Arrow binary arrays with nulls.
    """

    partition: Ints
    offset: Ints
    timestamp_ms: Ints
    key: pa.Array
    value: pa.Array
    stamped: bool
    topic: str | None = None

    def __len__(self) -> int:
        return len(self.offset)


def are_timestamps(timestamp_ms: Ints) -> bool:
    """Whether all of these can be timestamps."""
    return bool(((timestamp_ms >= 0) & (timestamp_ms <= LAST_TIMESTAMP_MS)).all())


def numbers(array: pa.Array, instead: int = NO_TIMESTAMP) -> Ints:
    """An Arrow integer array as numpy, nulls replaced."""
    filled = array.fill_null(instead) if array.null_count else array
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)
