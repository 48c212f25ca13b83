"""Expected outputs of the queries that answer record by record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from validator.fingerprints import Prints
from validator.records import Bools, Ints, Rows
from validator.streams import Stream


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected outputs, in the order of their inputs.

    `source` is the place of the input's stream in the query's list of streams, `row` the input's
    row there, and `owed_row` that of the last input that the output needs. `text` is the
    fingerprint of the value, or of the part of it that must be equal. `optional` outputs may be
    present or absent: the borderline.
    """

    source: npt.NDArray[np.int8]
    row: Rows
    owed_row: Rows
    text: Prints
    optional: Bools

    def __len__(self) -> int:
        return len(self.row)


def expect_rows(
    streams: list[Stream], chosen: list[Bools], optional: list[Bools] | None = None
) -> Expected:
    """The outputs of chosen rows of each stream; all of them must be kept ones."""
    sources, rows, texts, maybe = [], [], [], []
    for place, (stream, mask) in enumerate(zip(streams, chosen, strict=True)):
        chosen_rows = narrow(np.flatnonzero(mask), len(stream))
        sources.append(np.full(len(chosen_rows), place, dtype=np.int8))
        rows.append(chosen_rows)
        if len(chosen_rows) == len(stream.kept):
            texts.append(stream.answers)
        else:
            texts.append(stream.answers[np.searchsorted(stream.kept.all(), chosen_rows)])
        none = np.zeros(len(chosen_rows), dtype=np.bool_)
        maybe.append(none if optional is None else optional[place][chosen_rows])
    row = joined(rows)
    return Expected(joined(sources), row, row, joined(texts), joined(maybe))


def narrow(rows: Ints, count: int) -> Rows:
    """Row numbers below `count` in half the bytes, where that is enough."""
    return rows.astype(np.int32) if count < 2**31 else rows


def joined(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """All parts as one array; one part as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
