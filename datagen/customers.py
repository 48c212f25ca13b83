"""The customer table (TPC-C 4.3.3.1); names and places from the pools."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datagen import text
from datagen.parameters import District, Parameters
from datagen.pools import Pools
from datagen.randomness import Part, generator

SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")
LAST_NAMES = tuple(
    SYLLABLES[number // 100] + SYLLABLES[number // 10 % 10] + SYLLABLES[number % 10]
    for number in range(1_000)
)
# TPC-C takes the time of population; a fixed one keeps the files the same on every day.
REFERENCE = "2021-01-01 00:00:00.000000"


def render(parameters: Parameters, district: District, pools: Pools) -> tuple[bytes, int]:
    """One district of `customer.csv` and its number of rows."""
    random = generator(parameters.seed, Part.CUSTOMER, district.warehouse, district.district)
    rows = parameters.customers
    columns = [
        text.integers(np.arange(1, rows + 1) + district.base),
        _sample(random, pools.first_names, rows),
        "OE",
        pa.array(LAST_NAMES).take(pa.array(last_name_numbers(parameters, random, rows))),
        _sample(random, pools.streets, rows),
        _sample(random, pools.streets, rows),
        _sample(random, pools.cities, rows),
        _sample(random, pools.states, rows),
        _zip_codes(random, rows),
        text.strings(text.random_characters(random, 16 * rows, text.DIGITS), np.full(rows, 16)),
        REFERENCE,
        _credit(random, rows),
        "50000.00",
        _discount(random, rows),
        "-10.00",
        "10.00",
        "1",
        "0",
        text.random_strings(random, rows, 300, 500),
    ]
    return text.lines(columns), rows


def last_name_numbers(
    parameters: Parameters, random: np.random.Generator, rows: int
) -> npt.NDArray[np.int64]:
    """0..999 once for the first thousand customers of a district, then NURand(255, 0, 999)."""
    constant = int(generator(parameters.seed, Part.CONSTANTS).integers(0, 256))
    rest = max(rows - 1_000, 0)
    drawn = nurand(random, 255, 0, 999, constant, rest)
    return np.concatenate([np.arange(min(rows, 1_000)), drawn])


def nurand(
    random: np.random.Generator, a: int, low: int, high: int, constant: int, rows: int
) -> npt.NDArray[np.int64]:
    """TPC-C's non-uniform random numbers (clause 2.1.6)."""
    mixed = random.integers(0, a + 1, rows) | random.integers(low, high + 1, rows)
    return (mixed + constant) % (high - low + 1) + low


def _sample(random: np.random.Generator, pool: tuple[str, ...], rows: int) -> pa.Array:
    return pa.array(pool).take(pa.array(random.integers(0, len(pool), rows)))


def _zip_codes(random: np.random.Generator, rows: int) -> pa.Array:
    digits = np.full((rows, 9), ord("1"), dtype=np.uint8)
    digits[:, :4] = text.random_characters(random, 4 * rows, text.DIGITS).reshape(rows, 4)
    return text.strings(digits.ravel(), np.full(rows, 9))


def _credit(random: np.random.Generator, rows: int) -> pa.Array:
    """A tenth of the district's customers has bad credit."""
    bad = np.zeros(rows, dtype=np.int64)
    bad[random.permutation(rows)[: rows // 10]] = 1
    return pa.array(["GC", "BC"]).take(pa.array(bad))


def _discount(random: np.random.Generator, rows: int) -> pa.Array:
    """0.0000 to 0.5000."""
    return pa.array([f"0.{value:04d}" for value in range(5_001)]).take(
        pa.array(random.integers(0, 5_001, rows))
    )
