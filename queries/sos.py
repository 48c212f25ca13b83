"""Stochastic outlier selection (Janssens, 2013) as an estimator in scikit-learn's manner."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.metrics import DistanceMetric

Floats = NDArray[np.float64]
# Of single or double precision.
Real = NDArray[np.floating[Any]]

# Rows that are computed together: what they need stays in a core's own cache.
BLOCK = 125
# The first guess of beta, times the distance to a near neighbour; saves rounds, decides nothing.
START = 5.7
# Every so many columns stand for all when that neighbour is looked for.
STRIDE = 4
# From there to within 1e-4 of ln beta, which one exact round more turns into 1e-8 and less.
ROUGH_ROUNDS = 3
# Of the entropy, in nats: an outlier probability is then right to about 1e-8.
TOLERANCE = 1e-8
# Beyond this exponent affinities lose their digits, until exp(-746) is 0: there the answer of the
# definition is that of its bisection with all that they lose, and of nothing else.
FAINT = 650.0
BISECTIONS = 50
# Of ln beta: from 1 as far as this the bisection takes half of its steps; farther away it ends
# before it has found the entropy, and where it ends is the definition's answer.
REACH = BISECTIONS / 2 * np.log(2.0)


class StochasticOutlierSelection(BaseEstimator, OutlierMixin):  # type: ignore[misc]
    """The probability of every point that no other point chooses it as a neighbour.

    A point with a probability of `threshold` or more is an outlier. Distances come from
    differences, not from products of coordinates as in `sklearn.metrics.euclidean_distances`,
    which loses near points. Nothing here is large enough for the linear algebra library to start
    threads: one window is the work of one core.
    """

    def __init__(self, perplexity: float = 30.0, threshold: float = 0.5) -> None:
        self.perplexity = perplexity
        self.threshold = threshold

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002, N803 - scikit-learn's names
        """Compute `probabilities_`, in the order of the rows of X."""
        points = np.ascontiguousarray(X, dtype=np.float64)
        distances = DistanceMetric.get_metric("euclidean").pairwise(points)
        unchosen = np.ones(len(points))
        for begin in range(0, len(points), BLOCK):
            chosen = _bindings(points, distances[begin : begin + BLOCK], begin, self.perplexity)
            unchosen *= np.subtract(1.0, chosen, out=chosen).prod(axis=0)
        # A binding of 1 may be rounded to a little more.
        self.probabilities_ = np.maximum(unchosen, 0.0)
        return self

    def predict_probability(self, X: ArrayLike) -> Floats:  # noqa: N803 - scikit-learn's name
        """The outlier probability of every row, among these rows."""
        found: Floats = self.fit(X).probabilities_
        return found

    def fit_predict(self, X: ArrayLike, y: object = None, **_: Any) -> NDArray[np.int64]:  # noqa: ARG002, N803 - as above
        """-1 for outliers, 1 for all others."""
        outlier = self.predict_probability(X) >= self.threshold
        return np.where(outlier, -1, 1)


def _bindings(points: Floats, distances: Floats, begin: int, perplexity: float) -> Floats:
    """The probabilities with which the points from `begin` on choose each point as a neighbour.

    Their distances to all points are overwritten.
    """
    entropy = float(np.log(perplexity))
    own = np.arange(len(distances)), np.arange(begin, begin + len(distances))
    excess, nearest = _excess(distances, own)
    work = np.empty_like(excess)
    # What overflows, or is divided by 0, is found not to have the entropy asked for.
    with np.errstate(all="ignore"):
        log_beta = _rough(excess, perplexity)
        found, slope = _entropy(log_beta, excess, work)
        log_beta -= (found - entropy) / slope
        beta = np.exp(log_beta)
        affinities, total = _affinities(beta, excess, work)
        found = np.log(total) + beta * np.vecdot(affinities, excess) / total
        good = np.abs(found - entropy) <= TOLERANCE
        good &= (beta * nearest <= FAINT) & (np.abs(log_beta) <= REACH)
    hard = np.flatnonzero(~good)
    if len(hard):
        _by_bisection(points, begin, hard, entropy, affinities, total)
    bindings: Floats = np.divide(affinities, total[:, None], out=affinities)
    bindings[own] = 0.0
    return bindings


def _by_bisection(
    points: Floats,
    begin: int,
    hard: NDArray[np.intp],
    entropy: float,
    affinities: Floats,
    total: Floats,
) -> None:
    """Put affinities by the definition's bisection, and their sums, in the place of hard ones."""
    # Equal points have the same beta, and it costs much to find.
    _, first, which = np.unique(
        points[begin + hard], axis=0, return_index=True, return_inverse=True
    )
    rows = begin + hard[first]
    distances = DistanceMetric.get_metric("euclidean").pairwise(points[rows], points)
    others = np.ones_like(distances)
    others[np.arange(len(rows)), rows] = 0.0
    beta = _bisected(distances, others, entropy)
    distances, beta = distances[which.reshape(-1)], beta[which.reshape(-1), None]
    distances[np.arange(len(hard)), begin + hard] = np.inf
    found = np.exp(distances * -beta)
    gone = found.sum(axis=1) == 0.0
    # Where nothing is left of them, relative to the nearest neighbour, which cancels out.
    distances[gone] -= distances[gone].min(axis=1, keepdims=True)
    found[gone] = np.exp(distances[gone] * -beta[gone])
    affinities[hard], total[hard] = found, found.sum(axis=1)


def _excess(distances: Floats, own: tuple[Any, Any]) -> tuple[Floats, Floats]:
    """Distances less that of the nearest neighbour, so that no affinity underflows; and the latter.

    It cancels out of the entropy and of the binding probabilities. 0 between a point and itself.
    """
    distances[own] = np.inf
    nearest = distances.min(axis=1)
    nearest[~np.isfinite(nearest)] = 0.0
    distances -= nearest[:, None]
    distances[own] = 0.0
    return distances, nearest


def _rough(excess: Floats, perplexity: float) -> Floats:
    """About ln beta of every point, by Newton's method in single precision, which is fast.

    It begins at the distance of the neighbour whose rank is twice the perplexity; from there it
    needs neither a bracket nor small steps. Where it fails all the same, the caller finds out.
    """
    rough = excess.astype(np.float32)
    sample = rough[:, ::STRIDE]
    rank = min(round(2 * perplexity / STRIDE), sample.shape[1] - 1)
    near = np.partition(sample, rank, axis=1)[:, rank]
    near[near == 0.0] = 1.0
    log_beta = np.log(START / near)
    work = np.empty_like(rough)
    for _ in range(ROUGH_ROUNDS):
        entropy, slope = _entropy(log_beta, rough, work)
        log_beta -= np.clip((entropy - np.float32(np.log(perplexity))) / slope, -1.0, 1.0)
    found: Floats = log_beta.astype(np.float64)
    return found


def _affinities(beta: Real, excess: Real, work: Real) -> tuple[Any, Any]:
    """Of some points to all, in `work`, and their sums without the point's own, which is 1."""
    np.multiply(excess, -beta[:, None], out=work)
    np.exp(work, out=work)
    return work, work.sum(axis=1) - 1.0


def _entropy(log_beta: Real, excess: Real, work: Real) -> tuple[Any, Any]:
    """Entropy of the affinities of some points, and its derivative by ln beta."""
    beta = np.exp(log_beta)
    affinities, total = _affinities(beta, excess, work)
    first = np.vecdot(affinities, excess) / total
    affinities *= excess
    second = np.vecdot(affinities, excess) / total
    return np.log(total) + beta * first, -beta * beta * (second - first * first)


def _bisected(distances: Floats, neighbours: Floats, entropy: float) -> Floats:
    """Beta as the definition finds it: doubled or halved while a side is open, then halved in."""
    beta = np.ones(len(distances))
    below, above = np.zeros(len(distances)), np.full(len(distances), np.inf)
    for _ in range(BISECTIONS):
        affinities = np.exp(distances * -beta[:, None]) * neighbours
        total = affinities.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(total) + beta * (affinities * distances).sum(axis=1) / total
        grows = (total > 0.0) & (found > entropy)
        below, above = np.where(grows, beta, below), np.where(grows, above, beta)
        beta = np.where(np.isinf(above), 2.0 * beta, (below + above) / 2.0)
    return beta
