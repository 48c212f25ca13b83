"""Query 2's probabilities against the package of the algorithm's author, scikit-sos.

    pip install scikit-sos
    python benchmarks/sos_author.py [--windows 4] [--seed 1]

The package is no dependency of ours: it is asked for here alone. Its search ends once the entropy
is within a tolerance; 1e-9 instead of its default 1e-5 makes it as exact as the definition's 50
steps.
"""

import argparse
import sys
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from validator.oracles.determine_outliers import LIMIT, WINDOW
from validator.oracles.sos import PERPLEXITY, probabilities

TOLERANCE = 1e-6
VECTOR = ((1, 1), (2, 1), (1, 2), (2, 2), (5, 8))
Floats = npt.NDArray[np.float64]


def windows(count: int, seed: int) -> list[Floats]:
    """Made-up windows: integers that move smoothly, with episodes away from the rest."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        walk = np.cumsum(random.normal(0, 12, (WINDOW, 2)), axis=0)
        points = np.array([13_500, 14_500]) + walk + random.normal(0, 20, (WINDOW, 2))
        begin = int(random.integers(WINDOW - 30))
        points[begin : begin + 5 + number % 25] += random.normal(0, 900, 2)
        found.append(np.round(points))
    return found


def main() -> int:
    """Compare and tell; 1 where a probability differs by more than the tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        from sksos import SOS  # noqa: PLC0415 - no dependency of ours
    except ImportError:
        print("scikit-sos is not installed; install it with: pip install scikit-sos")
        return 3
    print(f"scikit-sos {version('scikit-sos')}, perplexity {PERPLEXITY:g}, windows of {WINDOW}")

    def author(points: Floats, perplexity: float, tolerance: float = 1e-9) -> Any:
        return SOS(perplexity=perplexity, eps=tolerance).predict(points)

    vector = np.array(VECTOR, dtype=np.float64)
    difference = np.abs(author(vector, 3.0) - probabilities(vector, 3.0, 500)).max()
    print(f"published vector: largest difference {difference:.1e}")
    worst, default, decided = float(difference), 0.0, 0
    for points in windows(given.windows, given.seed):
        ours = probabilities(points)
        theirs = author(points, PERPLEXITY)
        worst = max(worst, float(np.abs(ours - theirs).max()))
        usual = author(points, PERPLEXITY, 1e-5)
        default = max(default, float(np.abs(ours - usual).max()))
        decided += int(((ours >= LIMIT) != (theirs >= LIMIT)).sum())
    print(
        f"{given.windows * WINDOW:,} probabilities: largest difference {worst:.1e} "
        f"({default:.1e} at the package's own tolerance), {decided} decided otherwise"
    )
    return int(worst > TOLERANCE or decided > 0)


if __name__ == "__main__":
    sys.exit(main())
