"""Query 5, persist-processing-times: stamp production order lines with the database's time.

The keys of a micro-batch go to the database in bulk and in one transaction. A stamp that is set
stays, so that a batch that is done again, wholly or in part, changes nothing.
"""

import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from espbench.logs import LOGGER
from espbench.names import find_query
from queries.batches import Around, Handler
from queries.definition import Batched, Definition, Inputs
from queries.engine import Engine
from queries.source import production_times
from queries.stamping import PassingError, StampingSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What a key can be in the table; any other is of no row.
LARGEST_KEY = 2**31 - 1
PATIENCE_S = 60.0
PAUSE_S = 0.2


def lines(inputs: Inputs) -> "DataFrame":
    """The lines of well-formed production times, in the order of their partition."""
    return production_times(inputs.streams[3]).select("line", "largest_key")


def stamps(around: Around) -> Handler:
    """Stamp what a batch names, and commit."""
    session = StampingSession(around.database())
    around.counters.update(unknown_keys=0, retries=0)

    def attempt(block: bytes) -> int:
        """Again until it is committed; a lost connection or a conflict is not the end."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                return session.stamp(block)
            except PassingError as error:
                if time.monotonic() > give_up:
                    raise
                around.counters["retries"] += 1
                LOGGER.warning("%s; the batch is done again", error.cause)
                time.sleep(PAUSE_S)

    def handle(batch: "DataFrame", _number: int) -> None:
        table = batch.toArrow()
        fits = pc.less_equal(table["largest_key"], LARGEST_KEY)
        known = table["line"].filter(fits)
        around.counters["unknown_keys"] += len(table) - len(known)
        if len(known):
            around.counters["unknown_keys"] += attempt(joined(known))

    return handle


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
    ways={Engine.MICRO_BATCH: _BATCHED, Engine.AVAILABLE_NOW: _BATCHED},
)
