"""Mann and Whitney's rank test: whether one sample tends to larger values than another.

Exact by counting all ways to deal the ranks, ties included (midranks), as long as that is quick;
for larger samples the normal approximation with the correction for ties and continuity.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

# Up to here all deals are counted; beyond, the approximation is good.
EXACT_UP_TO = 40


def mann_whitney(base: Sequence[float], new: Sequence[float]) -> tuple[float, float]:
    """The probabilities, were both alike, of ranks as extreme as these.

    First for "new is larger" (one-sided), then for "they differ" (two-sided).
    """
    if not base or not new:
        return 1.0, 1.0
    # Doubled midranks are whole numbers, also with ties.
    ranks = _doubled_midranks([*base, *new])
    observed = sum(ranks[len(base) :])
    if len(ranks) <= EXACT_UP_TO:
        larger, smaller = _exact(ranks, len(new), observed)
    else:
        larger, smaller = _approximate(ranks, len(new), observed)
    return larger, min(1.0, 2 * min(larger, smaller))


def _doubled_midranks(values: Sequence[float]) -> list[int]:
    ordered = sorted(values)
    first: dict[float, int] = {}
    for at, value in enumerate(ordered):
        first.setdefault(value, at)
    counts = Counter(ordered)
    # Places first+1 … first+count share their mean.
    return [2 * first[value] + counts[value] + 1 for value in values]


def _exact(ranks: list[int], size: int, observed: int) -> tuple[float, float]:
    """The shares of all deals of `size` ranks whose sum is at least, and at most, the observed."""
    total = sum(ranks)
    ways = np.zeros((size + 1, total + 1), dtype=object)
    ways[0, 0] = 1
    for rank in ranks:
        for taken in range(size, 0, -1):
            ways[taken, rank:] += ways[taken - 1, : total + 1 - rank]
    sums = ways[size]
    deals = math.comb(len(ranks), size)
    return int(sums[observed:].sum()) / deals, int(sums[: observed + 1].sum()) / deals


def _approximate(ranks: list[int], size: int, observed: int) -> tuple[float, float]:
    count = len(ranks)
    other = count - size
    mean = size * (count + 1)
    ties = sum(each**3 - each for each in Counter(ranks).values())
    variance = 4 * size * other / 12 * (count + 1 - ties / (count * (count - 1)))
    if variance <= 0:
        return 1.0, 1.0
    spread = math.sqrt(variance)
    # One rank up or down is two of the doubled ones; continuity is half of that.
    return _upper((observed - mean - 1) / spread), _upper((mean - observed - 1) / spread)


def _upper(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2))
