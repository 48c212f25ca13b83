"""Sensor streams in the text of the DEBS 2012 Grand Challenge, the workplace id in column 57."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datagen import signals, text
from datagen.parameters import Parameters
from datagen.randomness import Part, generator

COLUMNS = 56
BLOCK = 10 * signals.CELL
START_S = int(datetime(2012, 2, 22, 16, 0, tzinfo=UTC).timestamp())
ROWS_PER_S = 100
FIRST_INDEX = 1_000_001
_TICKS_PER_S = 10_000_000  # the seven fractional digits of `ts`
_TICKS_PER_ROW = _TICKS_PER_S // ROWS_PER_S
# pc25, pc26, pc27 and res rest at zero; of the 44 binary columns these four are on.
_RESTING = "\t".join(["0000"] * 4)
_ON = {21, 22, 29, 32}
_BINARY = "\t".join("1" if column in _ON else "0" for column in range(44))


def blocks(rows: int) -> int:
    """How many blocks a stream of so many rows has."""
    return -(-rows // BLOCK)


def render(parameters: Parameters, stream: int, block: int, total_rows: int) -> tuple[bytes, int]:
    """One block of `sensor-<stream>.csv` and its number of rows."""
    first = block * BLOCK
    rows = min(BLOCK, total_rows - first)
    drawn = signals.draw(parameters.seed, stream, first // signals.CELL, rows)
    columns = [
        _times(parameters.seed, stream, block, first, rows),
        text.integers(np.arange(first, first + rows) + FIRST_INDEX),
        text.integers(drawn.mf01),
        text.integers(drawn.mf02),
        text.small(drawn.mf03),
        text.padded(drawn.pc13, 4),
        text.padded(drawn.pc14, 4),
        text.padded(drawn.pc15, 4),
        _RESTING,
        _BINARY,
        str(stream),
    ]
    return text.lines(columns), rows


def _times(seed: int, stream: int, block: int, first: int, rows: int) -> pa.Array:
    """`ts` of consecutive rows: a hundred a second, each a few microseconds off."""
    random = generator(seed, Part.SENSOR_TIMES, stream, block)
    jitter = random.integers(0, 600, rows)
    ticks = np.arange(first, first + rows) * _TICKS_PER_ROW + jitter
    seconds, fraction = ticks // _TICKS_PER_S, ticks % _TICKS_PER_S
    # Only one row in a hundred begins a new second: its text is made once and looked up.
    earliest = int(seconds[0])
    whole = np.arange(earliest, int(seconds[-1]) + 1) + START_S
    spelled = pc.replace_substring(
        pc.cast(pa.array(whole).cast(pa.timestamp("s")), pa.string()), " ", "T"
    )
    fractions = pc.binary_join_element_wise(
        text.padded(fraction // 1_000, 4), text.padded(fraction % 1_000, 3), "+00:00", ""
    )
    return pc.binary_join_element_wise(spelled.take(pa.array(seconds - earliest)), fractions, ".")
