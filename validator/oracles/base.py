"""What every oracle is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from validator.evidence import Evidence
from validator.fingerprints import Prints
from validator.fingerprints import id_and_line as fingerprints_of
from validator.outcome import Outcome
from validator.outputs import Outputs, Reads
from validator.streams import Answering, Keeps, Stream


@dataclass(frozen=True, slots=True)
class Table:
    """A captured table and what its file can prove."""

    rows: pa.Table | None
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that an oracle may look at; `outputs` is None where the answers are a table."""

    streams: list[Stream]
    outputs: Outputs | None
    exactly_once: bool
    tables: Mapping[str, Table] = field(default_factory=dict)
    freshness_s: float = 10.0


def id_and_line_of_source(values: pa.Array) -> Prints:
    """What most queries answer a record with."""
    return fingerprints_of(values, fields=2)


@dataclass(frozen=True, slots=True)
class Oracle:
    """The oracle of one query.

    `keeps` says which source records may have to be answered, `answering` makes the fingerprints of
    their answers, `measured` names the columns that are computed with, `reads` takes an output
    apart, and `judge` compares what should have been answered with what was.
    """

    name: str
    keeps: Keeps
    reads: Reads
    judge: Callable[[Inputs], Outcome]
    measured: tuple[str, ...] = ()
    answering: Answering = id_and_line_of_source


def id_and_line(value: bytes | None, _row: int) -> bytes | None:
    """`<id>;<due_ms>;<line>` to `<id>;<line>`, for people to see."""
    number, _, line = (value or b"").split(b";", 2)
    return number + b";" + line
