"""How close sensor streams come to what is published about the real ones.

Published (DEBS 2012 Grand Challenge, and the ESPBench dissertation about it): ranges, spreads,
shares beyond the limits of queries 3 and 4, and the share of outliers of query 2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]

WINDOW, PERPLEXITY, BISECTIONS = 500, 30, 50
LIMIT_3, LIMIT_4 = 14_963, 8_105


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure: what is published, and what was found."""

    figure: str
    published: str
    found: str


def findings(mf01: Ints, mf02: Ints, mf03: Ints, windows: int = 80) -> list[Finding]:
    """All figures of a stream; outliers are counted in so many windows, spread over it."""
    share = outlier_share(mf01, mf02, windows)
    return [
        Finding("`mf01` in [13,000, 14,000)", "mostly", _within(mf01, 13_000, 14_000)),
        Finding("`mf01` spread (largest - smallest)", "about 7,000", _spread(mf01)),
        Finding("`mf01` 99.5th percentile", "about 14,963", f"{np.percentile(mf01, 99.5):,.0f}"),
        Finding("`mf01` above 14,963 (query 3)", "0.42 %", _percent(mf01 > LIMIT_3, 2)),
        Finding("`mf02` in [14,000, 15,000)", "mostly", _within(mf02, 14_000, 15_000)),
        Finding("`mf02` spread", "about 7,000", _spread(mf02)),
        Finding("`mf03` in [7,900, 8,800)", "but for outliers", _within(mf03, 7_900, 8_800)),
        Finding("`mf03` spread", "2,100", _spread(mf03)),
        Finding("`mf03` below 8,105 (query 4)", "8.8 %", _percent(mf03 < LIMIT_4, 1)),
        Finding(
            f"outliers of query 2, mean of {windows} windows",
            "about 7 % (35 of 500)",
            f"{share:.1%} ({share * WINDOW:.1f} of {WINDOW})".replace("%", " %"),
        ),
    ]


def outlier_share(mf01: Ints, mf02: Ints, windows: int) -> float:
    """The mean share of records with an outlier probability of at least 0.5."""
    points = np.column_stack([mf01, mf02]).astype(np.float64)
    last = max(len(points) - WINDOW, 0)
    firsts = np.unique(np.linspace(0, last, windows).astype(int) // WINDOW * WINDOW)
    shares = [
        (outlier_probabilities(points[first : first + WINDOW]) >= 0.5).mean() for first in firsts
    ]
    return float(np.mean(shares))


def outlier_probabilities(points: Floats) -> Floats:
    """Stochastic outlier selection (Janssens 2013) with perplexity 30, by 50 bisections."""
    distances = np.hypot(*(points[:, None, :] - points[None, :, :]).transpose(2, 0, 1))
    beta, low, high = np.ones(len(points)), np.zeros(len(points)), np.full(len(points), np.inf)
    affinity = np.zeros_like(distances)
    for _ in range(BISECTIONS):
        affinity = np.exp(-beta[:, None] * distances)
        np.fill_diagonal(affinity, 0)
        total = np.maximum(affinity.sum(axis=1), 1e-300)
        entropy = np.log(total) + beta * (distances * affinity).sum(axis=1) / total
        wide = entropy > np.log(PERPLEXITY)
        low, high = np.where(wide, beta, low), np.where(wide, high, beta)
        beta = np.where(np.isinf(high), 2 * beta, (low + high) / 2)
    binding = affinity / affinity.sum(axis=1, keepdims=True)
    return np.asarray(np.prod(1 - binding, axis=0))


def histogram(values: Ints, width: int) -> list[tuple[int, int]]:
    """The lower edge and the count of every class of this width that is not empty."""
    edges, counts = np.unique(values // width * width, return_counts=True)
    return [(int(edge), int(count)) for edge, count in zip(edges, counts, strict=True)]


def bars(values: Ints, width: int, longest: int = 50) -> list[str]:
    """A histogram as lines of text; the bars are logarithmic, so that rare classes show."""
    classes = histogram(values, width)
    lengths = [np.log10(count) + 1 for _edge, count in classes]
    return [
        f"{edge:>7,} {count:>9,} {'█' * max(1, round(longest * length / max(lengths)))}"
        for (edge, count), length in zip(classes, lengths, strict=True)
    ]


def _within(values: Ints, low: int, high: int) -> str:
    return _percent((values >= low) & (values < high), 1)


def _percent(condition: npt.NDArray[np.bool_], decimals: int) -> str:
    return f"{100 * condition.mean():.{decimals}f} %"


def _spread(values: Ints) -> str:
    return f"{int(values.max()) - int(values.min()):,}"
