"""Matching by slices of identities, so that only a part of all outputs is in memory at a time.

An identity belongs to one slice, and what is matched under one identity does not depend on others.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from validator.expected import Expected, narrow
from validator.matching import EXTRA, NOBODY, Matching, Side, identity_codes, match
from validator.packed import Packed
from validator.records import Bools, Ints, Rows
from validator.streams import Stream

if TYPE_CHECKING:
    from validator.recordwise import Case

# Expected and actual outputs of a slice.
SLICE = 6_000_000
MOST_SLICES = 250
SAMPLE = 10_000
EVERY = slice(None)
PLACES = ("partition", "offset", "timestamp_ms")


def match_by_slices(case: "Case") -> Matching:
    """Match all of a case."""
    expected, outputs = case.expected, case.outputs
    found = Matching(
        answer=narrow(np.full(len(expected), NOBODY), len(outputs)),
        right=np.zeros(len(expected), dtype=np.bool_),
        kind=np.full(len(outputs), EXTRA, dtype=np.int8),
        expected=narrow(np.full(len(outputs), NOBODY), len(expected)),
    )
    for ours, theirs, named in _slices(case):
        sides = _sides(case, ours, theirs, named=named)
        part = match(*sides, case.tolerance)
        answered = part.answer >= 0
        found.answer[ours[answered]] = theirs[part.answer[answered]]
        found.right[ours] = part.right
        found.kind[theirs] = part.kind
        answers = part.expected >= 0
        found.expected[theirs[answers]] = ours[part.expected[answers]]
    return found


def _slices(case: "Case") -> Iterator[tuple[Ints, Ints, bool]]:
    """Rows of expected and of actual outputs, and whether they have an identity.

    Those that have none are matched where they can be matched by their value.
    """
    expected, columns = case.expected, case.outputs.columns
    ids, named = (
        of_inputs(case.streams, expected, name, expected.row) for name in ("id", "has_identity")
    )
    count = min(MOST_SLICES, 1 + (len(expected) + len(case.outputs)) // SLICE)
    sample = np.sort(ids[:: 1 + len(ids) // SAMPLE])
    bounds = sample[np.arange(1, count) * len(sample) // count] if len(sample) else sample
    ours = _numbered(ids, named, bounds, count)
    del ids, named
    theirs = _numbered(columns["id"], columns["has_identity"], bounds, count)
    for number in range(count + case.by_value):
        rows = np.flatnonzero(ours == number), np.flatnonzero(theirs == number)
        if len(rows[0]) or len(rows[1]):
            yield *rows, number < count


def _numbered(ids: Ints, named: Bools, bounds: Ints, count: int) -> npt.NDArray[np.uint8]:
    """The number of each one's slice; `count` for those without an identity."""
    numbers = np.searchsorted(bounds, ids, side="right").astype(np.uint8)
    numbers[~named] = count
    return numbers


def _sides(case: "Case", ours: Ints, theirs: Ints, *, named: bool) -> tuple[Side, Side]:
    expected, outputs = case.expected, case.outputs
    our_text, their_text = expected.text[ours], outputs.columns.at("text", theirs)
    if named:
        ours_is, theirs_is = identity_codes(
            of_inputs(case.streams, expected, "workplace", expected.row, ours),
            of_inputs(case.streams, expected, "id", expected.row, ours),
            outputs.columns.at("workplace", theirs),
            outputs.columns.at("id", theirs),
        )
    else:
        _, code = np.unique(np.concatenate([our_text, their_text]), return_inverse=True)
        ours_is, theirs_is = code[: len(ours)], code[len(ours) :]
    sink = outputs.topic
    when = sink.places.timestamp_ms.at(theirs) if sink.stamped else np.zeros_like(theirs)
    owed_ms = of_inputs(case.streams, expected, "timestamp_ms", expected.owed_row, ours)
    numbers = case.numbers
    return (
        Side(
            ours_is,
            our_text,
            owed_ms,
            None if numbers is None else numbers[ours],
            expected.optional[ours],
        ),
        Side(
            theirs_is,
            their_text,
            when,
            None if numbers is None else outputs.columns.at("number", theirs),
        ),
    )


def of_inputs(
    streams: list[Stream],
    expected: Expected,
    name: str,
    rows: Rows,
    which: Rows | slice = EVERY,
) -> npt.NDArray[Any]:
    """A column, or the place or time, of the inputs in `rows` of some expected outputs."""
    columns = [_column(stream, name) for stream in streams]
    if len(columns) == 1:
        all_of_them = which is EVERY and len(rows) == len(columns[0])
        return columns[0].all() if all_of_them else columns[0].at(rows[which])
    wanted, source = rows[which], expected.source[which]
    found = np.zeros(len(wanted), dtype=columns[0].kind)
    for place, column in enumerate(columns):
        here = source == place
        found[here] = column.at(wanted[here])
    return found


def _column(stream: Stream, name: str) -> Packed:
    if name in PLACES:
        place: Packed = getattr(stream.topic.places, name)
        return place
    return stream.columns.packed(name)
