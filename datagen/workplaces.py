r"""The workplaces and their downtimes.

Downtimes belong to a run, whose start nobody knows yet. So `workplace.csv` holds them on a scale of
its own, still as timestamps that any database can load: 1970-01-01 00:00:00 is the announced start
of the sender, and the run lasts exactly `NOMINAL_RUN_S` seconds from there, so that a second is a
hundredth of the run. The reset before a run moves them to its real start: what lies within the
nominal run is stretched to the run's duration, what lies before or after it is only shifted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from datagen import text
from datagen.parameters import Parameters
from datagen.randomness import Part, generator

NOMINAL_RUN_S = 100
DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000
_PERCENT_US = 1_000_000
_MACHINES = (1, 2)
# Of 2021: nothing here depends on a run, and nothing goes stale.
LONG_AGO_US = 946_684_800_000_000  # 2000-01-01
FAR_AWAY_US = 7_258_118_400_000_000  # 2200-01-01, within the range of 64-bit nanoseconds

Ints = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Downtimes:
    """One entry per downtime, in the order of the key; microseconds of the file's time scale."""

    workplaces: Ints
    numbers: Ints
    starts_us: Ints
    ends_us: Ints


def draw(parameters: Parameters) -> Downtimes:
    """The downtimes of all workplaces 0..10·scale."""
    random = generator(parameters.seed, Part.WORKPLACE)
    total = 10 * parameters.scale + 1
    fixed = parameters.downtimes == "2021"
    others = np.setdiff1d(np.arange(total), _MACHINES)
    throughout = np.zeros(total, dtype=bool)
    throughout[random.permutation(others)[: round(0.4 * len(others))]] = True
    throughout[2] = fixed
    single = np.arange(total) if fixed else others
    rows = [_single(random, single, throughout[single], fixed=fixed)]
    if not fixed:
        rows += [_during_the_run(random, machine) for machine in _MACHINES]
    columns = [np.concatenate(parts) for parts in zip(*rows, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    return Downtimes(*(column[order] for column in columns))


def render(parameters: Parameters) -> tuple[bytes, int]:
    """The whole of `workplace.csv` and its number of rows."""
    downtimes = draw(parameters)
    columns = [
        text.integers(downtimes.workplaces),
        text.integers(downtimes.numbers),
        text.timestamps(downtimes.starts_us),
        text.timestamps(downtimes.ends_us),
    ]
    return text.lines(columns), len(downtimes.workplaces)


def _single(
    random: np.random.Generator,
    workplaces: Ints,
    throughout: npt.NDArray[np.bool_],
    *,
    fixed: bool,
) -> tuple[Ints, Ints, Ints, Ints]:
    """One downtime per workplace: over the whole run, or past before it starts."""
    rows = len(workplaces)
    ended = -random.integers(1, 24 * 30, rows) * HOUR_US
    began = ended - random.integers(1, 9, rows) * HOUR_US
    if fixed:
        from_us, to_us, now_us = LONG_AGO_US, FAR_AWAY_US, LONG_AGO_US
    else:
        from_us, to_us, now_us = -30 * DAY_US, 30 * DAY_US, 0
    starts = np.where(throughout, from_us, now_us + began)
    ends = np.where(throughout, to_us, now_us + ended)
    return workplaces, np.zeros_like(workplaces), starts, ends


def _during_the_run(random: np.random.Generator, workplace: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Three to five downtimes within the run, together 32 to 58 % of it, none at its edges."""
    count = int(random.integers(3, 6))
    down_us = int(random.integers(32 * _PERCENT_US, 58 * _PERCENT_US + 1))
    lengths = _split(random, down_us, count)
    gaps = _split(random, NOMINAL_RUN_S * _PERCENT_US - down_us, count + 1)
    starts = np.cumsum(gaps[:-1]) + np.cumsum(lengths) - lengths
    return np.full(count, workplace), np.arange(count), starts, starts + lengths


def _split(random: np.random.Generator, total: int, parts: int) -> Ints:
    """Cut `total` into so many parts, none smaller than a third of the mean."""
    smallest = total // (3 * parts)
    rest = total - smallest * parts
    cuts = np.sort(random.integers(0, rest + 1, parts - 1))
    return smallest + np.diff(np.concatenate([[0], cuts, [rest]]))
