"""How long query 2's estimator takes for a window, and how far it is from the definition.

    python -m benchmarks.sos SENSOR_FILE [--windows 24] [--rounds 5]

(As a module: beside this file there is another `queries`.)
The windows are the first ones of a sensor file, real or generated, and some that no sensor gives
but that a search for beta can fail on. Times are CPU time of the process, which keeps to one core,
so that other programs disturb them less. What it computes is held against the definition's
bisection, as the validator has it. 1 where a probability is off by more than the tolerance.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil

from queries.determine_outliers import PERPLEXITY, WINDOW
from queries.sos import StochasticOutlierSelection
from validator.oracles.sos import probabilities

TOLERANCE = 1e-8
# Of the tab separated columns, from 0: mf01 and mf02.
COLUMNS = (2, 3)
Floats = npt.NDArray[np.float64]


def sensor(path: Path, count: int) -> list[Floats]:
    """The first windows of a file."""
    rows = np.loadtxt(path, delimiter="\t", usecols=COLUMNS, max_rows=count * WINDOW)
    return [rows[end - WINDOW : end] for end in range(WINDOW, len(rows) + 1, WINDOW)]


def pathological() -> dict[str, Floats]:
    """Windows by what is the matter with them."""
    random = np.random.default_rng(1)
    near = random.integers(13_000, 13_050, (WINDOW, 2)).astype(np.float64)
    halves = np.where(np.arange(WINDOW) < WINDOW // 2, 0.0, 1e9)[:, None]
    few = np.where(np.arange(WINDOW) < 31, 1e6, 0.0)[:, None]
    return {
        "all equal": np.full((WINDOW, 2), 13_000.0),
        "two places": near[random.integers(0, 2, WINDOW)],
        "100 equal": np.vstack([np.full((100, 2), 13_000.0), near[100:]]),
        "two clusters": near + halves,
        "31 far away": near + few,
        "one far away": np.vstack([near[1:], [[1e7, 1e7]]]),
        "2^0 to 2^50": np.column_stack([2.0 ** np.linspace(0, 50, WINDOW), np.zeros(WINDOW)]),
        "up to 10^18": random.integers(-(10**18), 10**18, (WINDOW, 2)).astype(np.float64),
    }


def tell(name: str, windows: list[Floats], rounds: int) -> float:
    """Print a line; returns the largest difference."""
    selection = StochasticOutlierSelection(PERPLEXITY)
    found = [selection.predict_probability(window) for window in windows]
    taken = []
    for _ in range(rounds):
        for window in windows:
            started = time.process_time()
            selection.predict_probability(window)
            taken.append((time.process_time() - started) * 1_000)
    worst = max(
        float(np.abs(one - probabilities(window, PERPLEXITY, newton=False)).max())
        for one, window in zip(found, windows, strict=True)
    )
    median, most = np.median(taken), max(taken)
    print(f"{name:14} {len(windows):>7} {median:9.1f} {most:9.1f} {worst:12.1e}")
    return worst


def main() -> int:
    """Measure, compare and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path, metavar="SENSOR_FILE")
    parser.add_argument("--windows", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    process = psutil.Process()
    process.cpu_affinity(process.cpu_affinity()[-1:])
    load = ", ".join(f"{each:.1f}" for each in psutil.getloadavg())
    print(f"one core; load average {load}; numpy {np.__version__}")
    print(f"{'':14} {'windows':>7} {'median ms':>9} {'most ms':>9} {'difference':>12}")
    worst = tell(given.file.name[:14], sensor(given.file, given.windows), given.rounds)
    for name, window in pathological().items():
        worst = max(worst, tell(name, [window], given.rounds))
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
