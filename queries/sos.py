"""Stochastic outlier selection (Janssens, 2013) as an estimator in scikit-learn's manner."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin

Floats = NDArray[np.float64]

# Newton's method on ln beta needs about seven rounds; the bracket guarantees an end.
MOST_ROUNDS = 60
# Of the entropy, in nats: an outlier probability is then right to about 1e-8.
TOLERANCE = 1e-8
# The first guess of beta, times the mean distance: saves rounds, decides nothing.
START = 9.0
# Where no beta is large enough for the entropy asked for, the definition ends near this one.
LARGEST = 2.0**50
# Beyond this exponent affinities lose their digits, until exp(-746) is 0: there the answer of the
# definition is that of its bisection, and of nothing else.
FAINT = 650.0
BISECTIONS = 50
# Of ln beta: from 1 as far as this the bisection takes half of its steps; farther away it ends
# before it has found the entropy, and where it ends is the definition's answer.
REACH = BISECTIONS / 2 * np.log(2.0)


class StochasticOutlierSelection(BaseEstimator, OutlierMixin):  # type: ignore[misc]
    """The probability of every point that no other point chooses it as a neighbour.

    A point with a probability of `threshold` or more is an outlier. Equal points are computed once
    and counted as often as they occur. Distances come from differences, not from products of
    coordinates as in `sklearn.metrics.euclidean_distances`, which loses near points.
    """

    def __init__(self, perplexity: float = 30.0, threshold: float = 0.5) -> None:
        self.perplexity = perplexity
        self.threshold = threshold

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002, N803 - scikit-learn's names
        """Compute `probabilities_`, in the order of the rows of X."""
        points, which, times = np.unique(
            np.asarray(X, dtype=np.float64), axis=0, return_inverse=True, return_counts=True
        )
        counts = times.astype(np.float64)
        excess, nearest = _excess(_distances(points), times > 1)
        # One work space for all rounds: fresh memory costs more than the arithmetic in it.
        work = np.empty_like(excess)
        weights = _weights(excess, nearest, counts, float(np.log(self.perplexity)), work)
        self.probabilities_ = _probabilities(weights, excess, counts, work)[which.reshape(-1)]
        return self

    def predict_probability(self, X: ArrayLike) -> Floats:  # noqa: N803 - scikit-learn's name
        """The outlier probability of every row, among these rows."""
        found: Floats = self.fit(X).probabilities_
        return found

    def fit_predict(self, X: ArrayLike, y: object = None, **_: Any) -> NDArray[np.int64]:  # noqa: ARG002, N803 - as above
        """-1 for outliers, 1 for all others."""
        outlier = self.predict_probability(X) >= self.threshold
        return np.where(outlier, -1, 1)


def _distances(points: Floats) -> Floats:
    squares = np.zeros((len(points), len(points)))
    difference = np.empty_like(squares)
    for column in points.T:
        np.subtract(column[:, None], column, out=difference)
        difference *= difference
        squares += difference
    return np.sqrt(squares, out=squares)


def _excess(distances: Floats, repeated: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Distances less that of the nearest neighbour, so that no affinity underflows; and the latter.

    It cancels out of the entropy and of the binding probabilities. 0 on the diagonal.
    """
    np.fill_diagonal(distances, np.inf)
    nearest = np.where(repeated, 0.0, distances.min(axis=1, initial=np.inf))
    nearest[~np.isfinite(nearest)] = 0.0
    distances -= nearest[:, None]
    np.fill_diagonal(distances, 0.0)
    return distances, nearest


def _weights(
    excess: Floats, nearest: Floats, counts: Floats, entropy: float, work: Floats
) -> Floats:
    """Beta of every point: where the entropy of its affinities is the one asked for.

    The entropy falls with beta, so that a bracket closes around the root; a step of Newton's
    method on ln beta that leaves it, or does not shrink, is replaced by its middle.
    """
    low, high = np.full(len(counts), -np.log(LARGEST)), np.full(len(counts), np.log(LARGEST))
    mean = (excess @ counts) / counts.sum()
    log_beta = np.log(START / np.where(mean > 0.0, mean, 1.0))
    moved = np.full(len(counts), np.inf)
    left, rows = np.arange(len(counts)), excess
    for _ in range(MOST_ROUNDS):
        now = log_beta[left]
        too_high, slope = _entropy(np.exp(now), rows, counts, work[: len(left)])
        too_high -= entropy
        low[left] = np.where(too_high > 0.0, now, low[left])
        high[left] = np.where(too_high > 0.0, high[left], now)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = now - too_high / slope
        good = (step > low[left]) & (step < high[left])
        # Steps must shrink, or they could go to and fro for ever.
        good &= np.abs(step - now) < moved[left] / 2.0
        following = np.where(good, step, (low[left] + high[left]) / 2.0)
        open_ = np.abs(too_high) > TOLERANCE
        log_beta[left] = np.where(open_ | good, following, now)
        moved[left] = np.abs(following - now)
        if not open_.all():
            left, rows = left[open_], rows[open_]
        if not len(left):
            break
    found: Floats = np.exp(log_beta)
    faint = (found * nearest > FAINT) | (np.abs(log_beta) > REACH)
    faint[left] = True
    hard = np.flatnonzero(faint)
    if len(hard):
        neighbours = np.tile(counts, (len(hard), 1))
        neighbours[np.arange(len(hard)), hard] -= 1.0
        found[hard] = _bisected(excess[hard] + nearest[hard, None], neighbours, entropy)
    return found


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


def _entropy(beta: Floats, excess: Floats, counts: Floats, work: Floats) -> tuple[Floats, Floats]:
    """Entropy of the affinities of some points, and its derivative by ln beta."""
    affinities = np.exp(np.multiply(excess, -beta[:, None], out=work), out=work)
    # The point itself stands on the diagonal with affinity 1, and does not count.
    total = affinities @ counts - 1.0
    affinities *= excess
    first = (affinities @ counts) / total
    affinities *= excess
    second = (affinities @ counts) / total
    return np.log(total) + beta * first, -beta * beta * (second - first * first)


def _probabilities(beta: Floats, excess: Floats, counts: Floats, work: Floats) -> Floats:
    bindings = np.exp(np.multiply(excess, -beta[:, None], out=work), out=work)
    total = bindings @ counts - 1.0
    bindings /= total[:, None]
    np.fill_diagonal(bindings, 0.0)
    with np.errstate(divide="ignore"):
        unbound = counts @ np.log(np.subtract(1.0, bindings, out=bindings), out=bindings)
        # Its equals, which are at no distance.
        equals = np.where(counts > 1.0, np.log(1.0 - np.minimum(1.0 / total, 1.0)), 0.0)
    found: Floats = np.exp(unbound + (counts - 1.0) * equals)
    return found
