"""Stochastic outlier selection (Janssens, 2013) on points of the plane.

    d_ij  Euclidean distance        a_ij = exp(-β_i·d_ij), a_ii = 0
    β_i   such that the entropy ln Σa + β·Σ(d·a)/Σa of row i is ln(perplexity)
    b_ij = a_ij / Σ_j a_ij          p_j = Π_i (1 - b_ij)

The definition bisects for β: from 1, the open side doubles or halves, a fixed number of steps, and
where Σa underflows β goes down. `bisect` does exactly that. `probabilities` comes to the same β
faster, by Newton's method on ln β, and leaves to `bisect` the rows where that does not settle
(so many equal distances that no β has the wanted entropy). Repeated points are counted once.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

PERPLEXITY = 30.0
STEPS = 50
NEWTON_STEPS = 25
SETTLED = 1e-7
TINY = 1e-300
FLAT = 1e-9


def probabilities(
    points: Floats, perplexity: float = PERPLEXITY, steps: int = STEPS, *, newton: bool = True
) -> Floats:
    """The outlier probability of each point (rows of two coordinates)."""
    unique, place, count = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    distance = np.hypot(
        unique[:, None, 0] - unique[None, :, 0], unique[:, None, 1] - unique[None, :, 1]
    )
    # How many neighbours stand at each place: a point is not its own neighbour.
    weight = np.broadcast_to(count.astype(np.float64), distance.shape).copy()
    np.fill_diagonal(weight, count - 1.0)
    wanted = float(np.log(perplexity))
    if newton:
        beta, settled = _newton(distance, weight, wanted)
        rest = np.flatnonzero(~settled)
        if len(rest):
            beta[rest] = bisect(distance[rest], weight[rest], wanted, steps)
    else:
        beta = bisect(distance, weight, wanted, steps)
    # Relative to the nearest neighbour, which changes no quotient and cannot underflow.
    nearest = np.where(weight > 0, distance, np.inf).min(axis=1, keepdims=True)
    affinity = np.where(weight > 0, np.exp(-beta[:, None] * np.maximum(distance - nearest, 0)), 0)
    binding = affinity / (affinity * weight).sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        # A point that all of another's affinity goes to: ln 0, and its probability is 0.
        alone = np.log1p(-np.minimum(binding, 1.0))
    times = np.broadcast_to(count.astype(np.float64)[:, None], distance.shape).copy()
    np.fill_diagonal(times, count - 1.0)
    logarithm = np.where(times > 0, alone * np.maximum(times, 1.0), 0.0).sum(axis=0)
    found: Floats = np.exp(logarithm)[place.reshape(-1)]
    return found


def bisect(distance: Floats, weight: Floats, wanted: float, steps: int) -> Floats:
    """β of every row, by the steps of the definition."""
    beta = np.ones(len(distance))
    low, high = np.full(len(distance), -np.inf), np.full(len(distance), np.inf)
    for _ in range(steps):
        affinity = np.exp(-beta[:, None] * distance) * weight
        total = affinity.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.log(total) + beta * (affinity * distance).sum(axis=1) / total
        # Too much entropy: the affinity must fall faster. An underflow: it falls too fast.
        rise = (entropy > wanted) & (total > 0)
        low = np.where(rise, beta, low)
        high = np.where(rise, high, beta)
        up = np.where(np.isinf(high), beta * 2, (beta + high) / 2)
        down = np.where(np.isinf(low), beta / 2, (beta + low) / 2)
        beta = np.where(rise, up, down)
    return beta


def _newton(distance: Floats, weight: Floats, wanted: float) -> tuple[Floats, Bools]:
    """β of every row by Newton's method on ln β, kept within bounds; and where it settled."""
    rows = len(distance)
    first, second = weight * distance, weight * distance * distance
    mean = first.sum(axis=1) / np.maximum(weight.sum(axis=1), 1.0)
    log_beta = -np.log(np.maximum(mean, TINY))
    # Its square, times any variance, still has a floating-point value.
    low, high = np.full(rows, -300.0), np.full(rows, 300.0)
    log_beta = np.clip(log_beta, low, high)
    settled = np.zeros(rows, dtype=np.bool_)
    for _ in range(NEWTON_STEPS):
        beta = np.exp(log_beta)
        affinity = np.multiply(distance, -beta[:, None])
        np.exp(affinity, out=affinity)
        total = np.maximum(np.einsum("ij,ij->i", affinity, weight), TINY)
        mean = np.einsum("ij,ij->i", affinity, first) / total
        variance = np.einsum("ij,ij->i", affinity, second) / total - mean * mean
        excess = np.where(total > TINY, np.log(total) + beta * mean - wanted, -1.0)
        low = np.where(excess > 0, log_beta, low)
        high = np.where(excess > 0, high, log_beta)
        curvature = beta * beta * variance
        useful = (curvature > FLAT) & (curvature < 1 / FLAT)
        step = excess / np.where(useful, curvature, 1.0)
        following = log_beta + step
        inside = useful & (following > low) & (following < high)
        log_beta = np.where(settled, log_beta, np.where(inside, following, (low + high) / 2))
        # The error after a step is about the square of the step.
        settled |= inside & (np.abs(step) < SETTLED)
        if settled.all():
            break
    return np.exp(log_beta), settled
