"""What a query file provides: the contract between one query and everything around it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from espbench.names import Query
from queries.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from queries.batches import Around, Handler
    from queries.pipe import Pipe

FINAL, UPDATES = "final", "updates"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a query may read.

    `streams` are the source streams by number, as Kafka delivers them: `key`, `value` (binary, null
    for a tombstone), `topic`, `partition`, `offset`, `timestamp` (LogAppendTime). `lookup` gives a
    table of the database; Spark reads it anew whenever it plans a batch.
    """

    streams: "Mapping[int, DataFrame]"
    lookup: "Callable[[str], DataFrame]"


@dataclass(frozen=True, slots=True)
class Streamed:
    """A query that Spark runs from Kafka to Kafka by itself.

    `answers` turns the inputs into the records of the sink: a column `value` (string or binary)
    and, where the query has keys, `key`. It starts nothing and reads nothing by itself. `emits`
    says whether an answer may be followed by a better one, `keeps` names what one batch leaves to
    the next: a checkpoint with other things in it is no beginning.
    """

    answers: "Callable[[Inputs], DataFrame]"
    emits: str = FINAL
    keeps: str = ""


@dataclass(frozen=True, slots=True)
class Batched:
    """A query that takes over after Spark has read a micro-batch.

    `records` is what it wants of the inputs. `handler`, called once, gives the function that is
    called with every batch of these records, in order; it returns when all its effects are durable.
    `most_records` bounds a batch that the driver holds in memory: a backlog may be of any length.
    """

    records: "Callable[[Inputs], DataFrame]"
    handler: "Callable[[Around], Handler]"
    emits: str = FINAL
    most_records: int | None = None
    keeps: str = ""


@dataclass(frozen=True, slots=True)
class Piped:
    """A query whose records go through Python of ours in real-time mode, while Spark reads on.

    `records` is what it wants of the inputs; `pipe` is called in a worker a partition, once an
    interval, with its records and yields the answers. It must be importable where tasks run.
    `counts` names what it adds to `Place.counts`.
    """

    records: "Callable[[Inputs], DataFrame]"
    pipe: "Pipe"
    emits: str = FINAL
    keeps: str = ""
    counts: tuple[str, ...] = ()


Way = Streamed | Batched | Piped


@dataclass(frozen=True, slots=True)
class Definition:
    """One runnable query: how it runs in which execution mode, the fastest first.

    Only modes that give right answers are there.
    """

    query: Query
    ways: Mapping[Engine, Way]

    def tasks(self, partitions: int) -> int:
        """The tasks that real-time mode runs at once: a reader a partition, one that aggregates."""
        way = self.ways.get(Engine.REAL_TIME)
        return partitions + (1 if way is not None and way.emits == UPDATES else 0)

    @property
    def stateful(self) -> tuple[Engine, ...]:
        """The modes in which executors keep state in the checkpoint."""
        return tuple(
            engine
            for engine, way in self.ways.items()
            if isinstance(way, Streamed) and way.emits == UPDATES
        )

    @property
    def piped(self) -> tuple[Engine, ...]:
        """The modes in which tasks run Python of ours."""
        return tuple(engine for engine, way in self.ways.items() if isinstance(way, Piped))

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The modes, the fastest first."""
        return tuple(self.ways)
