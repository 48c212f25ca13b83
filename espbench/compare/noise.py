"""How far apart equal runs may lie, where repetitions are too few for a test.

Two parts. Inside a run a figure wavers from one stretch of time to the next: resampling stretches
of a run (a block bootstrap, blocks because neighbours in time resemble each other) tells by how
much. Between runs something more differs (the JIT's choices, the placement of data, the neighbours
on the machine) that no look inside one run can show: for that an allowance is added.

All of it on the logarithm of the figure, where a tenth more means the same everywhere.
"""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# The standard deviation of a figure between equal runs on one machine, as a share of it.
BETWEEN_RUNS = 0.08
# How many standard deviations a difference must reach: one-sided, about one in twenty.
SURE = 1.645
BLOCKS = 15
RESAMPLES = 400
# Half of the broker's millisecond: keeps 0 ms apart from nothing.
HALF_STEP_MS = 0.5
# Steps of the histograms, as a share of the value.
STEP = 0.005
LARGEST_MS = 1e9

Floats = npt.NDArray[np.float64]


def log_of(value: float) -> float:
    """The logarithm of a latency; 0 ms is half a step of the clock."""
    return math.log(max(value, 0.0) + HALF_STEP_MS)


def within(time_ms: Floats, latency_ms: Floats, quantile: float, seed: int = 2021) -> float | None:
    """The standard deviation of a quantile's logarithm inside a run; None where too few."""
    if len(time_ms) < 2 * BLOCKS:
        return None
    edges = np.quantile(time_ms, np.linspace(0, 1, BLOCKS + 1)[1:-1])
    block = np.searchsorted(edges, time_ms, side="right")
    level = np.log(np.clip(latency_ms, 0, LARGEST_MS) + HALF_STEP_MS) - math.log(HALF_STEP_MS)
    step = np.rint(level / STEP).astype(np.int64)
    values, place = np.unique(step, return_inverse=True)
    counts = np.zeros((BLOCKS, len(values)))
    np.add.at(counts, (block, place), 1)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(BLOCKS, np.full(BLOCKS, 1 / BLOCKS), size=RESAMPLES)
    summed = np.cumsum(drawn @ counts, axis=1)
    wanted = quantile * (summed[:, -1:] - 1)
    found = values[np.argmax(summed > wanted, axis=1)] * STEP
    return float(np.std(found, ddof=1))


@cache
def within_run(root: Path, query: str, quantile: float) -> float | None:
    """The same for a query of a stored run; None where its latencies are not there."""
    path = root / f"latencies-{query}.parquet"
    try:
        table = pq.read_table(path, columns=["in_ms", "latency_ms", "after_warmup"])
        table = table.filter(pc.field("after_warmup"))
    except (OSError, pa.ArrowException, KeyError):
        return None
    time_ms = pc.cast(table["in_ms"], pa.float64()).to_numpy()
    return within(time_ms, pc.cast(table["latency_ms"], pa.float64()).to_numpy(), quantile)


def spread(logs: Sequence[float], inside: Sequence[float | None]) -> float:
    """The standard deviation of a side's median figure.

    `logs` are the figure's logarithms, one a run, `inside` what `within` says of each.
    """
    each = float(np.mean([BETWEEN_RUNS**2 + (part or 0.0) ** 2 for part in inside]))
    seen = float(np.var(logs, ddof=1)) if len(logs) > 1 else 0.0
    return math.sqrt(max(each, seen) / len(logs))


def explained(base: float, new: float) -> float:
    """The largest share by which equal sides with these spreads differ, but for one in twenty."""
    return math.expm1(SURE * math.hypot(base, new))
