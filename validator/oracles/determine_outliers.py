"""Query 2, determine-outliers: stochastic outlier selection on windows of 500 records.

Windows count well-formed records in the order of their partition; what is left at the end yields
nothing. A record is an outlier if its probability is at least 0.5, and its output is
`<id>;<line>,<probability>`. Within 0.0001 of 0.5 it is borderline.
"""

import math
import multiprocessing
import os
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from validator.expected import Expected, expect_rows, without_due
from validator.oracles.base import Inputs, Oracle
from validator.oracles.sos import probabilities
from validator.outcome import Outcome
from validator.outputs import identity_columns
from validator.records import Bools, Ints, RawBytes
from validator.recordwise import Case, judge_records
from validator.streams import Columns, Stream

WINDOW = 500
LIMIT = 0.5
BORDERLINE = 0.0001
# And what two decimals lose as binary numbers.
TOLERANCE = 0.005 + 0.0001 + 1e-9
_NUMBER = re.compile(rb"[+-]?[0-9]{1,20}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,3})?")
# Below this a pool of processes costs more than it saves.
POOL_WINDOWS = 200
POOL_PART = 50
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
COMMA = 0x2C
Floats = npt.NDArray[np.float64]


def windows(stream: Stream) -> Ints:
    """The rows of every full window, one window a line."""
    rows = np.flatnonzero(stream["well_formed"])
    order = np.lexsort((stream.topic.offset[rows], stream.topic.partition[rows]))
    rows = rows[order]
    full = []
    for number in np.unique(stream.topic.partition[rows]):
        own = rows[stream.topic.partition[rows] == number]
        full.append(own[: len(own) // WINDOW * WINDOW].reshape(-1, WINDOW))
    return np.concatenate([np.zeros((0, WINDOW), dtype=np.int64), *full])


def outlier_probabilities(points: Floats) -> Floats:
    """The probability of every record; `points` is windows x 500 x (mf01, mf02)."""
    if len(points) < POOL_WINDOWS:
        return _each(points)
    workers = os.cpu_count() or 1
    parts = np.array_split(points, -(-len(points) // POOL_PART))
    # Not forked: threads of other libraries may hold locks.
    fresh = multiprocessing.get_context("spawn")
    with _single_threaded(), ProcessPoolExecutor(workers, mp_context=fresh) as pool:
        return np.concatenate(list(pool.map(_each, parts)))


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Children inherit that their linear algebra has one thread: the processes are the threads."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _each(points: Floats) -> Floats:
    found = [probabilities(window) for window in points]
    return np.array(found, dtype=np.float64).reshape(len(points), WINDOW)


def expect(stream: Stream) -> tuple[Expected, Floats]:
    """The outliers in the order of their rows, and their probabilities."""
    rows = windows(stream)
    points = np.stack([stream["mf01"][rows], stream["mf02"][rows]], axis=-1).astype(np.float64)
    probability = np.full(len(stream), -1.0)
    probability[rows] = outlier_probabilities(points)
    last = np.zeros(len(stream), dtype=np.int64)
    last[rows] = rows[:, -1:]
    chosen = probability >= LIMIT - BORDERLINE
    optional = chosen & (probability <= LIMIT + BORDERLINE)
    expected = expect_rows([stream], [chosen], without_due, [optional])
    return replace(expected, owed_row=last[expected.row]), probability[expected.row]


def read_output(values: pa.Array) -> Columns:
    """Identity, probability, and where the text before the probability ends."""
    raw = RawBytes.of(values)
    commas = np.flatnonzero(raw.data == COMMA)
    place = np.searchsorted(commas, raw.stop) - 1
    has_comma = place >= np.searchsorted(commas, raw.start)
    stop = np.where(has_comma, commas[place] if len(commas) else 0, raw.start)
    columns = identity_columns(replace(raw, stop=stop), fields=1)
    data = raw.data.tobytes()
    given = [
        _probability(data[begin + 1 : end]) if good else math.nan
        for begin, end, good in zip(stop.tolist(), raw.stop.tolist(), has_comma, strict=True)
    ]
    probability = np.array(given, dtype=np.float64)
    columns["has_identity"] &= ~np.isnan(probability)
    texts = [
        data[begin:end] if good else None
        for begin, end, good in zip(raw.start.tolist(), stop.tolist(), has_comma, strict=True)
    ]
    found = np.empty(len(texts), dtype=object)
    found[:] = texts
    return columns | {"probability": probability, "text": found}


def _probability(given: bytes) -> float:
    number = float(given) if _NUMBER.fullmatch(given) else math.nan
    return number if math.isfinite(number) else math.nan


def _judge(inputs: Inputs) -> Outcome:
    outputs, (stream,) = inputs.outputs, inputs.streams
    assert outputs is not None  # noqa: S101 - this query has a sink
    expected, probability = expect(stream)
    return judge_records(
        Case(
            streams=[stream],
            expected=expected,
            outputs=outputs,
            plausible=outputs.columns["has_identity"],
            exactly_once=inputs.exactly_once,
            texts=pa.chunked_array([pa.array(outputs.columns["text"], type=pa.binary())]),
            numbers=(probability, outputs.columns["probability"]),
            tolerance=TOLERANCE,
            every_input_counts=True,
        )
    )


def _keeps(columns: Columns) -> Bools:
    well_formed: Bools = columns["well_formed"]
    return well_formed


ORACLE = Oracle("determine-outliers", _keeps, read_output, _judge, ("mf01", "mf02"))
