"""Query 5, persist-processing-times: stamp production order lines with the database's time.

The keys of a micro-batch, or all that wait in real-time mode, go to the database in bulk and in one
transaction. A stamp that is set
stays, so that a batch that is done again, wholly or in part, changes nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from espbench.names import find_query
from queries.batches import Around, Handler
from queries.definition import Batched, Definition, Inputs, Piped
from queries.engine import Engine
from queries.pipe import Place
from queries.source import production_times
from queries.stamping import Stamper, StampingSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What a key can be in the table; any other is of no row.
LARGEST_KEY = 2**31 - 1


def lines(inputs: Inputs) -> "DataFrame":
    """The lines of well-formed production times, in the order of their partition."""
    return production_times(inputs.streams[3]).select("line", "largest_key")


def stamps(around: Around) -> Handler:
    """Stamp what a batch names, and commit."""
    session = StampingSession(around.database())
    around.counters.update(unknown_keys=0, retries=0)

    def handle(batch: "DataFrame", _number: int) -> None:
        for name, number in stamp(session, [batch.toArrow()]).items():
            around.counters[name] += number

    return handle


def stamps_at_once(place: Place, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stamp what is there, commit, and see what has come meanwhile; all of it by the end."""
    with closing(StampingSession(place.database())) as session:
        with Stamper(lambda waiting: stamp(session, waiting)) as stamper:
            for batch in batches:
                stamper.add(pa.Table.from_batches([batch]))
        place.counts.add(dict(stamper.counts))
    yield from ()


def stamp(session: StampingSession, tables: Sequence[pa.Table]) -> dict[str, int]:
    """Stamp and commit, in one transaction; keys of no row, and how often it was tried again."""
    table = pa.concat_tables(tables)
    known = table["line"].filter(pc.less_equal(table["largest_key"], LARGEST_KEY))
    unknown, retries = len(table) - len(known), 0
    if len(known):
        found, retries = session.persist(joined(known))
        unknown += found
    return {"unknown_keys": unknown, "retries": retries}


def joined(texts: pa.ChunkedArray) -> bytes:
    """The texts, each ended by LF, in one piece."""
    ended = pc.binary_join_element_wise(texts.cast(pa.binary()), b"", b"\n").combine_chunks()
    offsets = np.frombuffer(ended.buffers()[1], dtype=np.int32)[
        ended.offset : ended.offset + len(ended) + 1
    ]
    return bytes(memoryview(ended.buffers()[2])[offsets[0] : offsets[-1]])


# A transaction of seconds, not of minutes, however much there is to make up for.
MOST_RECORDS = 500_000

_BATCHED = Batched(lines, stamps, most_records=MOST_RECORDS)

DEFINITION = Definition(
    query=find_query("persist-processing-times"),
    ways={
        Engine.REAL_TIME: Piped(lines, stamps_at_once, counts=("unknown_keys", "retries")),
        Engine.MICRO_BATCH: _BATCHED,
        Engine.AVAILABLE_NOW: _BATCHED,
    },
)
