"""Expected outputs of the queries that answer record by record."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from validator.records import Bools, Ints
from validator.streams import Stream
from validator.texts import take


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected outputs, in the order of their inputs.

    `source` is the place of the input's stream in the query's list of streams, `row` the input's
    row there, and `owed_row` that of the last input that the output needs. `text` is the value, or
    the part of it that must be equal. `optional` outputs may be present or absent: the borderline.
    """

    source: Ints
    row: Ints
    owed_row: Ints
    text: pa.ChunkedArray
    optional: Bools

    def __len__(self) -> int:
        return len(self.row)


def without_due(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """`<id>;<due_ms>;<line>` to `<id>;<line>`."""
    return pc.replace_substring_regex(values, r"^([^;]*);[^;]*;", r"\1;", max_replacements=1)


Rewrite = Callable[[pa.ChunkedArray], pa.ChunkedArray]


def expect_rows(
    streams: list[Stream],
    chosen: list[Bools],
    rewrite: Rewrite | None = None,
    optional: list[Bools] | None = None,
) -> Expected:
    """The outputs of chosen rows of each stream, `rewrite` making the value from the input's.

    The values of all chosen rows must have been kept.
    """
    sources, rows, texts, maybe = [], [], [], []
    for place, (stream, mask) in enumerate(zip(streams, chosen, strict=True)):
        chosen_rows = np.flatnonzero(mask)
        sources.append(np.full(len(chosen_rows), place, dtype=np.int64))
        rows.append(chosen_rows)
        if len(chosen_rows) == len(stream.kept):
            values = stream.kept_values
        else:
            kept_place = np.searchsorted(stream.kept, chosen_rows)
            values = pa.chunked_array([take(stream.kept_values, kept_place)], type=pa.binary())
        texts.extend((rewrite(values) if rewrite else values).chunks)
        none = np.zeros(len(chosen_rows), dtype=np.bool_)
        maybe.append(none if optional is None else optional[place][chosen_rows])
    return Expected(
        source=np.concatenate(sources),
        row=np.concatenate(rows),
        owed_row=np.concatenate(rows),
        text=pa.chunked_array(texts, type=pa.binary()),
        optional=np.concatenate(maybe),
    )
