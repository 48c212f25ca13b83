"""The item table (TPC-C 4.3.3.1)."""

import numpy as np
import pyarrow as pa

from datagen import text
from datagen.parameters import Parameters
from datagen.randomness import Part, generator

BLOCK = 10_000
ORIGINAL = np.frombuffer(b"ORIGINAL", dtype=np.uint8)


def blocks(parameters: Parameters) -> int:
    """How many blocks the table has."""
    return -(-parameters.items // BLOCK)


def render(parameters: Parameters, block: int) -> tuple[bytes, int]:
    """One block of `item.csv` and its number of rows."""
    random = generator(parameters.seed, Part.ITEM, block)
    first = block * BLOCK
    rows = min(BLOCK, parameters.items - first)
    columns = [
        text.integers(np.arange(first + 1, first + rows + 1)),
        text.integers(random.integers(1, 10_001, rows)),
        text.random_strings(random, rows, 14, 24),
        text.hundredths(random.integers(100, 10_001, rows)),
        _data(random, rows),
    ]
    return text.lines(columns), rows


def _data(random: np.random.Generator, rows: int) -> pa.Array:
    """26 to 50 characters; a tenth of the rows carry ORIGINAL at a random place."""
    lengths = random.integers(26, 51, rows)
    starts = np.cumsum(lengths) - lengths
    characters = text.random_characters(random, int(lengths.sum()), text.LETTERS)
    chosen = np.sort(random.permutation(rows)[: rows // 10])
    places = starts[chosen] + random.integers(0, lengths[chosen] - len(ORIGINAL) + 1)
    characters[places[:, None] + np.arange(len(ORIGINAL))] = ORIGINAL
    return text.strings(characters, lengths)
