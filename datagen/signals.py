"""The sensor signals: look-alikes of a machine's power readings, calibrated to what is published.

A stream is cut into cells of `CELL` rows. The slow level of a signal wanders from the cell's left
edge to its right edge, which the neighbouring cell shares, so that it never jumps. Within a cell
the signal leaves that level in episodes: it goes smoothly to another level, stays there for a while
and comes back. Every cell has one episode above query 3's limit and one below query 4's, so that
these queries have work in any 10,000 rows.

All arithmetic is on integers, in tenths of the unit that is written.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from datagen.randomness import Part, generator

CELL = 2_500
UNIT = 10
_FULL = 1 << 12  # an episode's weight at its height

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Signals:
    """Consecutive rows of one stream, one array per column, in the unit that is written."""

    mf01: Ints
    mf02: Ints
    mf03: Ints
    pc13: Ints
    pc14: Ints
    pc15: Ints


def draw(seed: int, stream: int, first_cell: int, rows: int) -> Signals:
    """`rows` rows of a stream from the beginning of a cell; a cell may be cut short at the end."""
    cells = -(-rows // CELL)
    edges = [_edges(seed, stream, cell) for cell in range(first_cell, first_cell + cells + 1)]
    drawn = [
        _cell(generator(seed, Part.SENSOR, stream, first_cell + number), edges[number : number + 2])
        for number in range(cells)
    ]
    columns = [np.concatenate(parts)[:rows] for parts in zip(*drawn, strict=True)]
    return Signals(*columns)


def _edges(seed: int, stream: int, cell: int) -> tuple[int, int]:
    """The levels of mf01 and mf03 at the left edge of a cell."""
    random = generator(seed, Part.SENSOR_EDGES, stream, cell)
    return int(random.integers(13_350, 13_651)) * UNIT, int(random.integers(8_250, 8_601)) * UNIT


def _cell(random: np.random.Generator, edges: list[tuple[int, int]]) -> tuple[Ints, ...]:
    (left_1, left_3), (right_1, right_3) = edges
    steps = _noise(random, (3, CELL + 2))
    # Neighbouring steps resemble each other, as they do in the real signals.
    common = 10 * steps[0, 2:] + 4 * steps[0, 1:-1]
    own = 8 * steps[1, 2:] + 8 * steps[1, 1:-1] + 6 * steps[1, :-2]
    third = 10 * steps[2, 2:] + 5 * steps[2, 1:-1]
    mf01 = _bridge(common, left_1, right_1)
    shared = 8 * (mf01 - 13_500 * UNIT) // 10
    mf02 = 14_500 * UNIT + shared + _bridge(own, 0, 0)
    mf03 = _bridge(third, left_3, right_3)
    # The power stays above query 4's limit and below the upper end except in episodes.
    mf03 = 8_115 * UNIT + np.abs(mf03 - 8_115 * UNIT)
    mf03 = 8_790 * UNIT - np.abs(8_790 * UNIT - mf03)
    for weight, level in _power_episodes(random):
        mf03 = _towards(mf03, level, weight)
    for weight, level in _current_episodes(random):
        mf01 = _towards(mf01, level, weight)
        mf02 = _towards(mf02, level + int(random.integers(900, 1_101)) * UNIT, weight)
    jitter = _noise(random, (2, CELL)) * 5
    small = _noise(random, (3, CELL + 1)) * 8
    small = small[:, 1:] + small[:, :-1]
    return (
        np.clip(_written(mf01 + jitter[0] // 2), 10_000, 17_000),
        np.clip(_written(mf02 + jitter[0] // 2), 10_900, 18_000),
        np.clip(_written(mf03 + jitter[1] // 2), 7_300, 9_400),
        68 + _written(small[0]),
        190 + _written(small[1]),
        153 + _written(small[2]),
    )


def _current_episodes(random: np.random.Generator) -> list[tuple[Ints, int]]:
    """Of mf01, and of mf02 with it: one above the limit in every cell, others now and then.

    The cell is cut into quarters, one for each kind, so that episodes do not run into each other.
    """
    kind = int(random.integers(0, 40))
    above = int(random.integers(14_990, 16_901)) * UNIT
    episodes = [_episode(random, 0, rise=(6, 12), stay=(1, 6), level=above)]
    if kind < 8:
        # Some only come up to the limit: the 99.5th percentile lies on it.
        held = int(random.integers(14_945, 14_958)) * UNIT
        episodes.append(_episode(random, 1, rise=(8, 16), stay=(10, 18), level=held))
    elif kind < 14:
        below = int(random.integers(10_050, 12_501)) * UNIT
        episodes.append(_episode(random, 2, rise=(8, 16), stay=(2, 12), level=below))
    return episodes


def _power_episodes(random: np.random.Generator) -> list[tuple[Ints, int]]:
    """Of mf03: one below query 4's limit in every cell, outliers in one cell of ten."""
    low = int(random.integers(7_925, 8_086)) * UNIT
    episodes = [_episode(random, int(random.integers(0, 3)), (20, 40), (122, 283), low)]
    kind = int(random.integers(0, 20))
    if kind == 0:
        deep = int(random.integers(7_305, 7_700)) * UNIT
        episodes.append(_episode(random, 3, (6, 14), (3, 15), deep))
    elif kind == 1:
        high = int(random.integers(9_000, 9_400)) * UNIT
        episodes.append(_episode(random, 3, (6, 14), (3, 15), high))
    return episodes


def _episode(
    random: np.random.Generator,
    quarter: int,
    rise: tuple[int, int],
    stay: tuple[int, int],
    level: int,
) -> tuple[Ints, int]:
    """An episode's weight for every row of the cell, and its level."""
    edge = int(random.integers(rise[0], rise[1] + 1))
    length = int(random.integers(stay[0], stay[1] + 1))
    place = int(random.integers(0, CELL // 4 - 2 * edge - length))
    ramp = np.arange(1, edge + 1)
    # The cubic 3t² - 2t³ leaves one level and reaches the other without a corner.
    smooth = _FULL * ramp * ramp * (3 * (edge + 1) - 2 * ramp) // (edge + 1) ** 3
    weight = np.zeros(CELL, dtype=np.int64)
    first = quarter * (CELL // 4) + place
    weight[first : first + edge] = smooth
    weight[first + edge : first + edge + length] = _FULL
    weight[first + edge + length : first + 2 * edge + length] = smooth[::-1]
    return weight, level


def _towards(signal: Ints, level: int, weight: Ints) -> Ints:
    return signal + (level - signal) * weight // _FULL


def _bridge(steps: Ints, left: int, right: int) -> Ints:
    """A walk by these steps from `left` that would be at `right` one step after its end."""
    walk = np.cumsum(steps)
    position = np.arange(CELL)
    begun: Ints = left + walk - steps[0]
    lacking = right - left - int(walk[-1] - steps[0])
    return begun + lacking * position // CELL


def _noise(random: np.random.Generator, shape: tuple[int, int]) -> Ints:
    """Sums of three small integers: nearly normal, variance 6."""
    drawn = random.integers(-2, 3, (3, *shape), dtype=np.int8).astype(np.int64)
    total: Ints = drawn[0] + drawn[1] + drawn[2]
    return total


def _written(tenths: Ints) -> Ints:
    return (tenths + UNIT // 2) // UNIT
