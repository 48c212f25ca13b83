"""What every oracle is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from validator.evidence import Evidence
from validator.outcome import Outcome
from validator.outputs import Outputs, Reads
from validator.streams import Keeps, Stream


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


@dataclass(frozen=True, slots=True)
class Oracle:
    """The oracle of one query.

    `keeps` says which source values it will want to see again, `measured` which of their columns,
    `reads` takes an output apart, and `judge` compares what should have been answered with what
    was. `echoes`: outputs are inputs unchanged, which makes reading them cheaper.
    """

    name: str
    keeps: Keeps
    reads: Reads
    judge: Callable[[Inputs], Outcome]
    measured: tuple[str, ...] = ()
    echoes: bool = False
