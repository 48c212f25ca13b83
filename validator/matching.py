"""Matching of expected and actual outputs by identity, as multisets.

Every output, expected or actual, carries the code of its identity. Within one identity an actual
output is *right* if its value is the expected one. As many right outputs as are expected match,
the first by time; the right ones left over are duplicates. An output of that identity with another
value is wrong as long as an expected one is left to be answered, else extra; an identity that
nobody expects is extra; an expected output without an answer is missing. So one lost record is one
missing record, and one altered record is one wrong record, wherever it stands.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from validator.fingerprints import Prints
from validator.records import Bools, Ints, Rows

Floats = npt.NDArray[np.float64]

MATCHED, WRONG, DUPLICATE, EXTRA = 0, 1, 2, 3
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Side:
    """Expected or actual outputs: identity code, the text's fingerprint, and when they came.

    `number`, where values hold one, is compared within a tolerance instead of as text. `optional`
    expected outputs may have no answer.
    """

    code: Ints
    text: Prints
    when: Ints
    number: Floats | None = None
    optional: Bools | None = None

    def __len__(self) -> int:
        return len(self.code)


@dataclass(frozen=True, slots=True)
class Matching:
    """Who answers whom.

    Per expected output: `answer`, the row of the output that answers it, right or wrong, or -1; and
    `right`. Per actual output: its `kind`, and `expected`, the row of the expected output that it
    answers or repeats, or -1.
    """

    answer: Rows
    right: Bools
    kind: npt.NDArray[np.int8]
    expected: Rows

    def count(self, kind: int) -> int:
        """How many actual outputs are of this kind."""
        return int((self.kind == kind).sum())

    @property
    def missing(self) -> Bools:
        """Which expected outputs have no answer."""
        unanswered: Bools = self.answer == NOBODY
        return unanswered


def match(expected: Side, actual: Side, tolerance: float = 0.0) -> Matching:
    """Match both sides; of equal `when`, the order of rows decides.

    Numbers, where there are any, are right within `tolerance`.
    """
    if expected.number is not None and actual.number is not None:
        expected, actual = tell_apart(expected, actual, tolerance)
    found = _match(expected, actual, tolerance)
    if expected.optional is not None and expected.optional.any():
        _required_first(found, expected, expected.optional)
    return found


def _required_first(found: Matching, expected: Side, optional: Bools) -> None:
    """Give answers of what is optional to what is required and equal, where that has none."""
    unanswered = np.flatnonzero(found.missing & ~optional)
    spare = np.flatnonzero(found.right & optional)
    spare = spare[np.isin(expected.code[spare], expected.code[unanswered])]
    by_answer: dict[tuple[int, int], list[int]] = {}
    for row in spare[::-1].tolist():
        key = int(expected.code[row]), int(expected.text[row])
        by_answer.setdefault(key, []).append(row)
    for row in unanswered[np.isin(expected.code[unanswered], expected.code[spare])].tolist():
        giving = by_answer.get((int(expected.code[row]), int(expected.text[row])))
        if giving:
            giver = giving.pop()
            output = found.answer[giver]
            found.answer[row], found.right[row], found.expected[output] = output, True, row
            found.answer[giver], found.right[giver] = NOBODY, False


def _match(expected: Side, actual: Side, tolerance: float) -> Matching:
    expected_order = np.lexsort((expected.when, expected.code))
    codes = expected.code[expected_order]
    fresh = np.ones(len(codes), dtype=np.bool_)
    fresh[1:] = codes[1:] != codes[:-1]
    neighbours = np.flatnonzero(~fresh)
    differing = (
        expected.text[expected_order[neighbours]] != expected.text[expected_order[neighbours - 1]]
    )
    if not differing.any():
        return _match_uniform(expected, actual, expected_order, fresh, tolerance)
    return _match_refined(expected, actual, np.unique(codes[neighbours[differing]]), tolerance)


def _match_uniform(
    expected: Side, actual: Side, order: Ints, fresh: Bools, tolerance: float
) -> Matching:
    """Match where all expected outputs of one identity have the same text."""
    found = Matching(
        answer=np.full(len(expected), NOBODY, dtype=np.int64),
        right=np.zeros(len(expected), dtype=np.bool_),
        kind=np.full(len(actual), EXTRA, dtype=np.int8),
        expected=np.full(len(actual), NOBODY, dtype=np.int64),
    )
    if not len(expected) or not len(actual):
        return found
    begin = np.flatnonzero(fresh)
    size = np.diff(np.append(begin, len(order)))
    group = np.searchsorted(expected.code[order[begin]], actual.code)
    group[group == len(begin)] = 0
    known = np.flatnonzero(expected.code[order[begin]][group] == actual.code)
    first = order[begin[group[known]]]
    right = expected.text[first] == actual.text[known]
    if expected.number is not None and actual.number is not None:
        right &= np.abs(actual.number[known] - expected.number[first]) <= tolerance
    good, bad = known[right], known[~right]
    good = good[np.lexsort((actual.when[good], group[good]))]
    bad = bad[np.lexsort((actual.when[bad], group[bad]))]

    rank = _rank(group[good])
    in_time = rank < size[group[good]]
    hits = order[begin[group[good]] + np.minimum(rank, size[group[good]] - 1)]
    found.kind[good] = np.where(in_time, MATCHED, DUPLICATE)
    found.expected[good] = hits
    found.answer[hits[in_time]] = good[in_time]
    found.right[hits[in_time]] = True

    taken = np.minimum(np.bincount(group[good], minlength=len(begin)), size)
    place = taken[group[bad]] + _rank(group[bad])
    open_ = place < size[group[bad]]
    missed = order[(begin[group[bad]] + place)[open_]]
    found.kind[bad[open_]] = WRONG
    found.expected[bad[open_]] = missed
    found.answer[missed] = bad[open_]
    found.expected[bad[~open_]] = order[begin[group[bad[~open_]]]]
    return found


def _match_refined(expected: Side, actual: Side, mixed: Ints, tolerance: float) -> Matching:
    """Match where one identity is expected with several texts (ids sent twice, not the same line).

    There the text becomes part of the identity first; what is then left over on both sides under
    one identity is wrong instead of missing and extra.
    """
    expected_rows = np.flatnonzero(np.isin(expected.code, mixed))
    actual_rows = np.flatnonzero(np.isin(actual.code, mixed))
    split = len(expected_rows)
    texts = np.concatenate([expected.text[expected_rows], actual.text[actual_rows]])
    _, text_code = np.unique(texts, return_inverse=True)
    codes = np.concatenate([expected.code[expected_rows], actual.code[actual_rows]])
    _, fine = np.unique(np.stack([codes, text_code]), axis=1, return_inverse=True)
    above = 1 + max(int(expected.code.max()), int(actual.code.max(initial=0)))
    expected_code, actual_code = expected.code.copy(), actual.code.copy()
    expected_code[expected_rows] = above + fine.reshape(-1)[:split]
    actual_code[actual_rows] = above + fine.reshape(-1)[split:]
    found = _match(
        replace(expected, code=expected_code), replace(actual, code=actual_code), tolerance
    )
    left = np.flatnonzero(found.missing)
    over = np.flatnonzero((found.kind == EXTRA) & (found.expected == NOBODY))
    if len(left) and len(over):
        rest = _match(
            Side(expected.code[left], _blank(len(left)), expected.when[left]),
            Side(actual.code[over], _blank(len(over)), actual.when[over]),
            tolerance,
        )
        pair = np.flatnonzero(~rest.missing)
        found.answer[left[pair]] = over[rest.answer[pair]]
        found.kind[over[rest.answer[pair]]] = WRONG
        found.expected[over[rest.answer[pair]]] = left[pair]
    return found


def tell_apart(expected: Side, actual: Side, tolerance: float) -> tuple[Side, Side]:
    """Give every expected output a code of its own where one identity is expected several times.

    A record that was delivered twice, into two windows, has two numbers. As many pairs of equal
    text and close numbers as possible get a code each, an output that repeats one of them the same
    code; whatever is left keeps the identity's code, and no two of it are right for each other.
    """
    codes, counts = np.unique(expected.code, return_counts=True)
    several = codes[counts > 1]
    if not len(several):
        return expected, actual
    fresh = 1 + max(int(codes[-1]), int(actual.code.max(initial=0)))
    expected_code, actual_code = expected.code.copy(), actual.code.copy()
    ours, theirs = _by_text(expected, several), _by_text(actual, several)
    for key, wanted in ours.items():
        given = theirs.get(key, [])
        pairs = _pairs(wanted, given, tolerance)
        for row, other in pairs.items():
            expected_code[row], actual_code[other] = fresh, fresh
            fresh += 1
        paired = [(number, row) for number, row in wanted if row in pairs]
        for number, other in given:
            if other not in pairs.values() and paired:
                distance, row = min((abs(number - one), row) for one, row in paired)
                if distance <= tolerance:
                    actual_code[other] = expected_code[row]
    return replace(expected, code=expected_code), replace(actual, code=actual_code)


Numbered = list[tuple[float, int]]


def _by_text(side: Side, codes: Ints) -> dict[tuple[int, int], Numbered]:
    """Number and row of the outputs with these codes, rising, by code and text."""
    assert side.number is not None  # noqa: S101 - looked at by the caller
    rows = np.flatnonzero(np.isin(side.code, codes))
    found: dict[tuple[int, int], Numbered] = {}
    for row, text in zip(rows.tolist(), side.text[rows].tolist(), strict=True):
        found.setdefault((int(side.code[row]), text), []).append((float(side.number[row]), row))
    return {key: sorted(numbered) for key, numbered in found.items()}


def _pairs(wanted: Numbered, given: Numbered, tolerance: float) -> dict[int, int]:
    """As many pairs of close numbers as there can be: both sides rise, so that the next is best."""
    pairs = {}
    place = 0
    for number, row in wanted:
        while place < len(given) and given[place][0] < number - tolerance:
            place += 1
        if place < len(given) and given[place][0] <= number + tolerance:
            pairs[row] = given[place][1]
            place += 1
    return pairs


def _blank(count: int) -> Prints:
    return np.zeros(count, dtype=np.uint64)


def _rank(groups: Ints) -> Ints:
    """The place of each element within its group; `groups` is sorted."""
    if not len(groups):
        return np.zeros(0, dtype=np.int64)
    begins = np.ones(len(groups), dtype=np.bool_)
    begins[1:] = groups[1:] != groups[:-1]
    places = np.arange(len(groups))
    return places - np.maximum.accumulate(np.where(begins, places, 0))


def identity_codes(
    workplace: Ints, number: Ints, other_workplace: Ints, other_number: Ints
) -> tuple[Ints, Ints]:
    """One code per identity (workplace, id), the same on both sides."""
    workplaces = np.concatenate([workplace, other_workplace])
    numbers = np.concatenate([number, other_number])
    place, places = dense(workplaces)
    high = int(numbers.max(initial=0)) + 1
    if high * places >= 2**62:
        distinct, numbers = np.unique(numbers, return_inverse=True)
        high = len(distinct)
    codes = place * high + numbers
    return codes[: len(number)], codes[len(number) :]


def dense(numbers: Ints) -> tuple[Ints, int]:
    """Numbers from 0 in place of these, and how many may occur."""
    if not len(numbers):
        return numbers, 1
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < 1 << 32:
        return numbers - low, high - low + 1
    distinct, place = np.unique(numbers, return_inverse=True)
    return place.astype(np.int64), len(distinct)
