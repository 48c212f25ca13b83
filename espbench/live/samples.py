"""From an answer to the input that it must be measured from. Pure: names and numbers only.

The identity of a sensor record is its id; it stands in partition `id mod N` at offset `id div N`,
because the sender numbers from 0 and nothing else writes to its topics. The reader checks it.
"""

from dataclasses import dataclass

from espbench.names import Query

_WINDOW_ROWS = 500
WINDOW_MS = 1_000


@dataclass(frozen=True, slots=True)
class Input:
    """Where the input of an answer stands: source stream, partition, offset."""

    stream: int
    partition: int
    offset: int


def input_of(query: Query, value: bytes, partitions: int) -> Input | None:
    """The record that an answer's latency counts from; None where the answer names none.

    For query 2 that is the 500th record of the window, if no record before it was malformed.
    """
    head = value.split(b";", 1)[0]
    if not head.isdigit() or len(head) > 18:
        return None
    number = int(head)
    stream = 1
    if len(query.streams) > 1:
        last = value.rsplit(b"\t", 1)[-1]
        if not last.isdigit() or int(last) not in query.streams:
            return None
        stream = int(last)
    partition, offset = number % partitions, number // partitions
    if query.name == "determine-outliers":
        offset = offset // _WINDOW_ROWS * _WINDOW_ROWS + _WINDOW_ROWS - 1
    return Input(stream, partition, offset)


def window_end_ms(key: bytes | None) -> int | None:
    """The end of the window that an answer of query 1 is about."""
    if key is None or not key.isdigit() or len(key) > 15:
        return None
    return int(key) + WINDOW_MS


def due_ms(value: bytes) -> int | None:
    """When a source record was due."""
    words = value.split(b";", 2)
    return int(words[1]) if len(words) == 3 and words[1].isdigit() else None
