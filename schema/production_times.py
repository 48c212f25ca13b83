"""The check that production times and production order lines belong together."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from espbench.errors import InputError

_ROWS_AT_ONCE = 100_000
_REMEDY = "make the data again: espbench datagen --force"


def check_production_times(lines: Path, times: Path) -> None:
    """Exactly two production times per production order line: its start, then its end.

    Reads both files in step, block by block. Raises `InputError` where they differ.
    """
    wanted, found = _Columns(lines, 8, 3), _Columns(times, 4, 4)
    while True:
        keys, stamps = wanted.take(_ROWS_AT_ONCE), found.take(2 * _ROWS_AT_ONCE)
        if not keys.shape[1] and not stamps.shape[1]:
            return
        starts, ends = stamps[:, ::2], stamps[:, 1::2]
        if not (
            np.array_equal(starts[:3], keys)
            and np.array_equal(ends[:3], keys)
            and np.all(starts[3] == 0)
            and np.all(ends[3] == 1)
        ):
            raise InputError(
                f"{times} does not hold exactly a start and an end for every line of {lines.name}",
                _REMEDY,
            )


class _Columns:
    """The first columns of a file as integers, taken from front to back."""

    def __init__(self, path: Path, columns: int, wanted: int) -> None:
        self._path = path
        names = [str(number) for number in range(columns)]
        with self._refusing():
            self._batches = pacsv.open_csv(
                path,
                read_options=pacsv.ReadOptions(column_names=names, block_size=1 << 20),
                parse_options=pacsv.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=pacsv.ConvertOptions(
                    include_columns=names[:wanted],
                    column_types=dict.fromkeys(names[:wanted], pa.int64()),
                ),
            )
        self._rest: npt.NDArray[np.int64] = np.empty((wanted, 0), dtype=np.int64)

    def take(self, rows: int) -> npt.NDArray[np.int64]:
        """The next rows, fewer at the end; shape (columns, rows)."""
        parts, have = [self._rest], self._rest.shape[1]
        with self._refusing():
            while have < rows:
                try:
                    batch: Any = self._batches.read_next_batch()
                except StopIteration:
                    break
                parts.append(np.stack([column.to_numpy() for column in batch.columns]))
                have += batch.num_rows
        everything = np.concatenate(parts, axis=1)
        self._rest = everything[:, rows:]
        return everything[:, :rows]

    def _refusing(self) -> "_Refusing":
        return _Refusing(self._path)


class _Refusing:
    """Turns what Arrow raises into a refusal of the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (pa.ArrowException, OSError)):
            raise InputError(f"cannot read {self._path}: {error}", _REMEDY) from error
