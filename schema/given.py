"""Lines of the production-times stream as arrays, ready for one update of each row they name."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from espbench.errors import InputError

STARTED, ENDED = 1, 2
_NAMES = ("pt_o_id", "pt_ol_number", "pt_pol_number", "pt_is_end")

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Given:
    """Production times: `keys` of all lines (3 columns), and every row once in `rows`.

    The columns of `rows` are the key and what happened: `STARTED`, `ENDED` or both, added. Rows
    come in the order of their keys, which is the order in which databases keep them. `rows` is
    shorter than `keys` where a row is named twice, be it by a start and an end or by a repetition.
    """

    keys: Integers
    rows: Integers

    @property
    def inputs(self) -> int:
        """How many lines were given."""
        return int(self.keys.shape[1])


def read_given(lines: Iterable[bytes]) -> Given:
    """Read lines in blocks that need not end with lines; raises `InputError` for malformed ones."""
    text = b"".join(lines)
    if not text:
        return Given(np.empty((3, 0), np.int64), np.empty((4, 0), np.int64))
    try:
        table = pacsv.read_csv(
            pa.BufferReader(text),
            read_options=pacsv.ReadOptions(column_names=_NAMES, use_threads=False),
            parse_options=pacsv.ParseOptions(
                delimiter="\t", quote_char=False, ignore_empty_lines=False
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(_NAMES, pa.int64()), null_values=[]
            ),
        )
    except pa.ArrowInvalid as error:
        raise InputError(
            f"not a line of the production-times stream: {error}", "give four integers a line"
        ) from error
    columns = np.stack([column.to_numpy() for column in table.columns])
    return Given(columns[:3], _each_row_once(columns))


def _each_row_once(columns: Integers) -> Integers:
    ordered = columns[:, np.lexsort(columns[2::-1])]
    differs = np.any(ordered[:3, 1:] != ordered[:3, :-1], axis=0)
    first = np.flatnonzero(np.concatenate(([True], differs)))
    happened = np.where(ordered[3] == 0, STARTED, np.where(ordered[3] == 1, ENDED, 0))
    rows = ordered[:, first]
    rows[3] = np.bitwise_or.reduceat(happened, first)
    return rows
