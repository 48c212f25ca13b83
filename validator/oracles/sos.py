"""Stochastic outlier selection (Janssens, 2013) on points of the plane.

    d_ij  Euclidean distance        a_ij = exp(-β_i·d_ij), a_ii = 0
    β_i   such that the entropy ln Σa + β·Σ(d·a)/Σa of row i is ln(perplexity)
    b_ij = a_ij / Σ_j a_ij          p_j = Π_i (1 - b_ij)

The definition bisects for β: from 1, the open side doubles or halves, a fixed number of steps, and
where Σa underflows β goes down. `bisect` does exactly that. `probabilities` comes to the same β
faster, by Newton's method on ln β, and leaves to `bisect` the rows where that does not settle
(so many equal distances that no β has the wanted entropy). Repeated points are counted once.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

PERPLEXITY = 30.0
STEPS = 50
TINY = 1e-300
FLAT = 1e-9
# Beyond this exponent an affinity has fewer digits than other numbers, and their rounding counts.
FAINT = 690.0
# From β = 1 as far as this, 50 steps are 14 to double or halve and 36 to bisect.
REACH = 14 * math.log(2)


@dataclass(frozen=True, slots=True)
class Precision:
    """How far Newton's method goes: steps at most, the last step's size, the least sum to trust."""

    steps: int
    settled: float
    least: float


COARSE = Precision(steps=15, settled=1e-3, least=1e-30)
FINE = Precision(steps=20, settled=1e-7, least=TINY)


def probabilities(
    points: Floats, perplexity: float = PERPLEXITY, steps: int = STEPS, *, newton: bool = True
) -> Floats:
    """The outlier probability of each point (rows of two coordinates)."""
    unique, place, count = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    across = unique[:, None, 0] - unique[None, :, 0]
    along = unique[:, None, 1] - unique[None, :, 1]
    distance = np.sqrt(across * across + along * along)
    copies = count.astype(np.float64)
    wanted = float(np.log(perplexity))
    if newton:
        beta, settled = _newton(distance, copies, wanted)
        rest = np.flatnonzero(~settled)
    else:
        beta, rest = np.ones(len(unique)), np.arange(len(unique))
    if len(rest):
        beta[rest] = bisect(distance[rest], _weight(copies, rest), wanted, steps)
    return _unbound(distance, copies, beta)[place.reshape(-1)]


def _weight(copies: Floats, rows: Ints) -> Floats:
    """How many neighbours stand at each place: a point is not its own neighbour."""
    weight = np.broadcast_to(copies, (len(rows), len(copies))).copy()
    weight[np.arange(len(rows)), rows] -= 1.0
    return weight


def _unbound(distance: Floats, copies: Floats, beta: Floats) -> Floats:
    """Per place the product of 1 - b over all other points; `copies` points stand at a place."""
    others = distance.copy()
    np.fill_diagonal(others, np.where(copies > 1, 0.0, np.inf))
    others -= _shift(others, beta, copies)[:, None]
    others *= -beta[:, None]
    affinity = np.exp(others, out=others)
    # In the diagonal stand the copies of the point itself, one fewer than of another place.
    own = affinity.diagonal().copy()
    total = affinity @ copies - own
    free = np.subtract(1.0, np.minimum(affinity / total[:, None], 1.0), out=affinity)
    own = free.diagonal().copy()
    np.fill_diagonal(free, 1.0)
    found: Floats = free.prod(axis=0)
    for row in np.flatnonzero(copies > 1):
        found *= free[row] ** (copies[row] - 1.0)
        found[row] *= own[row] ** (copies[row] - 1.0)
    return found


def _shift(others: Floats, beta: Floats, copies: Floats) -> Floats:
    """What is taken off a row's distances, which changes no quotient: the nearest neighbour's.

    A row whose affinities fade is left as the definition has it, with what they lose by that, as
    long as anything is left of them.
    """
    nearest: Floats = others.min(axis=1)
    for row in np.flatnonzero(beta * nearest > FAINT):
        if (np.exp(-beta[row] * others[row]) @ copies) > 0:
            nearest[row] = 0.0
    return nearest


def bisect(distance: Floats, weight: Floats, wanted: float, steps: int) -> Floats:
    """β of every row, by the steps of the definition."""
    beta = np.ones(len(distance))
    low, high = np.full(len(distance), -np.inf), np.full(len(distance), np.inf)
    for _ in range(steps):
        affinity = np.exp(-beta[:, None] * distance)
        total = (affinity * weight).sum(axis=1)
        # Each product is rounded before it is counted several times, as if it stood there as often.
        weighted = (affinity * distance * weight).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.log(total) + beta * weighted / total
        # Too much entropy: the affinity must fall faster. An underflow: it falls too fast.
        rise = (entropy > wanted) & (total > 0)
        low = np.where(rise, beta, low)
        high = np.where(rise, high, beta)
        up = np.where(np.isinf(high), beta * 2, (beta + high) / 2)
        down = np.where(np.isinf(low), beta / 2, (beta + low) / 2)
        beta = np.where(rise, up, down)
    return beta


def _newton(distance: Floats, copies: Floats, wanted: float) -> tuple[Floats, Bools]:
    """β of every row by Newton's method on ln β, kept within bounds; and where it settled.

    The first steps are made in single precision, which costs a third; the last ones, for the rows
    that still move, in double precision. What the definition's steps would not reach as exactly,
    a β far from 1, does not count as settled.
    """
    rows = len(distance)
    # The scale of the nearest neighbours, of which there are about as many as the perplexity says.
    near = min(rows - 1, round(float(np.exp(wanted))))
    scale = np.partition(distance, near, axis=1)[:, : near + 1].mean(axis=1)
    log_beta = np.clip(-np.log(np.maximum(scale, TINY)), -REACH, REACH)
    _descend(distance.astype(np.float32), copies, wanted, log_beta, np.arange(rows), COARSE)
    log_beta = np.clip(log_beta, -REACH, REACH)
    settled = _descend(distance, copies, wanted, log_beta, np.arange(rows), FINE)
    return np.exp(log_beta), settled & (np.abs(log_beta) < REACH)


def _descend(
    distance: npt.NDArray[Any],
    copies: Floats,
    wanted: float,
    log_beta: Floats,
    rows: Ints,
    precision: "Precision",
) -> Bools:
    """Newton's steps on `log_beta`, in place, for rows until they settle; returns which did."""
    settled = np.zeros(len(log_beta), dtype=np.bool_)
    low, high = np.full(len(log_beta), -2 * REACH), np.full(len(log_beta), 2 * REACH)
    kind = distance.dtype
    weight, own = copies.astype(kind), ((copies - 1) / copies).astype(kind)
    part = distance
    for _ in range(precision.steps):
        now = log_beta[rows]
        beta = np.exp(now)
        affinity = np.multiply(part, -beta.astype(kind)[:, None])
        np.exp(affinity, out=affinity)
        affinity[np.arange(len(rows)), rows] = own[rows]
        total = np.maximum((affinity @ weight).astype(np.float64), TINY)
        np.multiply(affinity, part, out=affinity)
        mean = (affinity @ weight).astype(np.float64) / total
        np.multiply(affinity, part, out=affinity)
        variance = (affinity @ weight).astype(np.float64) / total - mean * mean
        # An underflow: the affinity falls too fast, there is too little entropy.
        excess = np.where(total > precision.least, np.log(total) + beta * mean - wanted, -1.0)
        low[rows] = np.where(excess > 0, now, low[rows])
        high[rows] = np.where(excess > 0, high[rows], now)
        curvature = beta * beta * variance
        useful = (curvature > FLAT) & (curvature < 1 / FLAT) & (total > precision.least)
        step = excess / np.where(useful, curvature, 1.0)
        following = now + step
        inside = useful & (following > low[rows]) & (following < high[rows])
        # The error after a step is about the square of the step.
        done = useful & (np.abs(step) < precision.settled)
        middle = (low[rows] + high[rows]) / 2
        log_beta[rows] = np.where(inside | done, following, middle)
        settled[rows[done]] = True
        if done.all():
            break
        if done.any():
            rows = rows[~done]
            part = distance[rows]
    return settled
