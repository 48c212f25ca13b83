"""Query 2, determine-outliers: stochastic outlier selection on windows of 500 records.

Windows count well-formed records in the order of their partition; what is left at the end yields
nothing. A record is an outlier if its probability is at least 0.5, and its output is
`<id>;<line>,<probability>`. Within 0.0001 of 0.5 it is borderline.
"""

import math
import multiprocessing
import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from validator.ahead import ahead
from validator.expected import Expected, expect_rows, narrow
from validator.fingerprints import of_id_and_line
from validator.oracles.base import Inputs, Oracle, id_and_line
from validator.oracles.sos import probabilities
from validator.outcome import Outcome
from validator.outputs import identity_columns
from validator.records import Bools, Ints, RawBytes
from validator.recordwise import Case, judge_records
from validator.streams import Columns, Stream
from validator.topics import order_of

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
    partition = stream.topic.places.partition.at(rows)
    order = order_of(partition, stream.topic.places.offset.at(rows))
    if order is not None:
        rows, partition = rows[order], partition[order]
    full = []
    for number in np.unique(partition):
        begin, end = np.searchsorted(partition, [number, number + 1])
        full.append(rows[begin : end - (end - begin) % WINDOW].reshape(-1, WINDOW))
    return np.concatenate(full) if full else np.zeros((0, WINDOW), dtype=np.int64)


def outlier_probabilities(points: Floats) -> Floats:
    """The probability of every record; `points` is windows x 500 x (mf01, mf02)."""
    parts = np.array_split(points, -(-len(points) // POOL_PART) or 1)
    return np.concatenate(list(_of_parts(parts, len(points))))


def _of_parts(parts: Iterable[Floats], count: int) -> Iterator[Floats]:
    """Those of each part of `count` windows; a few parts are in memory at a time."""
    if count < POOL_WINDOWS:
        yield from map(_each, parts)
        return
    # Not forked: threads of other libraries may hold locks.
    fresh = multiprocessing.get_context("spawn")
    workers = os.cpu_count() or 1
    with _single_threaded(), ProcessPoolExecutor(workers, mp_context=fresh) as pool:
        for _, found in ahead(parts, _each, pool):
            yield found


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


def outliers(stream: Stream) -> tuple[Ints, Floats, Ints]:
    """Rows whose probability is at the limit or above, that, and their windows' last rows."""
    rows = windows(stream)
    mf01, mf02 = stream["mf01"], stream["mf02"]
    parts = [rows[begin : begin + POOL_PART] for begin in range(0, len(rows), POOL_PART)]
    points = (np.stack([mf01[part], mf02[part]], axis=-1).astype(np.float64) for part in parts)
    chosen, probability, last = [], [], []
    for part, given in zip(parts, _of_parts(points, len(rows)), strict=True):
        hit = given >= LIMIT - BORDERLINE
        chosen.append(part[hit])
        probability.append(given[hit])
        last.append(np.broadcast_to(part[:, -1:], part.shape)[hit])
    ints = np.zeros(0, dtype=np.int64)
    return (
        np.concatenate([ints, *chosen]),
        np.concatenate([ints.astype(np.float64), *probability]),
        np.concatenate([ints, *last]),
    )


def expect(stream: Stream) -> tuple[Expected, Floats]:
    """The outliers in the order of their rows, and their probabilities."""
    rows, probability, last = outliers(stream)
    order = np.argsort(rows)
    rows, probability, last = rows[order], probability[order], last[order]
    chosen, optional = (np.zeros(len(stream), dtype=np.bool_) for _ in range(2))
    chosen[rows] = True
    optional[rows] = probability <= LIMIT + BORDERLINE
    expected = expect_rows([stream], [chosen], [optional])
    return replace(expected, owed_row=narrow(last, len(stream))), probability


def read_output(_keys: pa.Array, values: pa.Array) -> Columns:
    """Identity, the text before the probability, and that number."""
    raw = RawBytes.of(values)
    commas = np.flatnonzero(raw.data == COMMA)
    place = np.searchsorted(commas, raw.stop) - 1
    has_comma = place >= np.searchsorted(commas, raw.start)
    stop = np.where(has_comma, commas[place] if len(commas) else 0, raw.start)
    before = replace(raw, stop=stop)
    columns = identity_columns(before, fields=1)
    data = raw.data.tobytes()
    given = [
        _probability(data[begin + 1 : end]) if good else math.nan
        for begin, end, good in zip(stop.tolist(), raw.stop.tolist(), has_comma, strict=True)
    ]
    probability = np.array(given, dtype=np.float64)
    columns["has_identity"] &= ~np.isnan(probability)
    return columns | {"number": probability, "text": of_id_and_line(before, fields=1)}


def _probability(given: bytes) -> float:
    number = float(given) if _NUMBER.fullmatch(given) else math.nan
    return number if math.isfinite(number) else math.nan


def _judge(inputs: Inputs) -> Outcome:
    outputs, (stream,) = inputs.outputs, inputs.streams
    assert outputs is not None  # noqa: S101 - this query has a sink
    expected, probability = expect(stream)

    def shown(value: bytes | None, row: int) -> bytes:
        return b"%s,%.2f" % (id_and_line(value, row), probability[row])

    return judge_records(
        Case(
            streams=[stream],
            expected=expected,
            outputs=outputs,
            plausible=outputs.columns["has_identity"],
            exactly_once=inputs.exactly_once,
            shown=shown,
            numbers=probability,
            tolerance=TOLERANCE,
            every_input_counts=True,
        )
    )


def _keeps(columns: Columns) -> Bools:
    well_formed: Bools = columns["well_formed"]
    return well_formed


ORACLE = Oracle("determine-outliers", _keeps, read_output, _judge, ("mf01", "mf02"))
