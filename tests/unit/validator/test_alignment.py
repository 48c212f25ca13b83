import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from validator import alignment
from validator.alignment import align
from validator.records import Bools, Ints


def aligned(expected: str, actual: str, free_end: str | None = None) -> list[tuple[int, int]]:
    """`free_end`: which letters of `actual` may stand for the last expected one, whatever it is."""
    left, right = np.array(list(expected)), np.array(list(actual))

    def equal(row: Ints, column: Ints) -> Bools:
        same: Bools = left[row] == right[column]
        return same

    free = None if free_end is None else np.array([one in free_end for one in actual])
    pairs = align(len(expected), len(actual), equal, free_end=free)
    return [(int(row), int(column)) for row, column in pairs]


def test_one_loss_is_one_missing() -> None:
    assert aligned("abcde", "abde") == [(0, 0), (1, 1), (3, 2), (4, 3)]
    assert aligned("abcde", "bcde") == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert aligned("abc", "abxc") == [(0, 0), (1, 1), (2, 3)]
    assert aligned("abc", "axc") == [(0, 0), (1, 1), (2, 2)]
    assert aligned("", "abc") == aligned("abc", "") == []


def test_the_last_may_be_anything() -> None:
    assert aligned("abc", "ab", "abx") == [(0, 0), (1, 1)]
    assert aligned("abc", "abx", "abx") == [(0, 0), (1, 1), (2, 2)]
    assert aligned("abc", "ax", "abx") == [(0, 0), (2, 1)]


def test_the_last_may_not_be_what_came_too_early_for_it() -> None:
    assert aligned("abc", "ax", "") == [(0, 0), (1, 1)]
    assert aligned("abc", "abc", "") == [(0, 0), (1, 1), (2, 2)]


@given(st.text("ab", max_size=8), st.text("ab", max_size=8))
def test_the_fewest_differences(expected: str, actual: str) -> None:
    pairs = aligned(expected, actual)
    assert pairs == sorted(pairs)
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    unequal = sum(expected[row] != actual[column] for row, column in pairs)
    cost = unequal + len(expected) + len(actual) - 2 * len(pairs)
    best = list(range(len(actual) + 1))
    for letter in expected:
        before, best[0] = best[0], best[0] + 1
        for place, other in enumerate(actual):
            before, best[place + 1] = (
                best[place + 1],
                min(before + (letter != other), best[place] + 1, best[place + 1] + 1),
            )
    assert cost == best[-1]


def test_far_too_many_outputs() -> None:
    assert alignment._in_passing(
        3, 9, lambda row, column: np.asarray(column == 3 * row + 1)
    ).tolist() == [[0, 1], [1, 4], [2, 7]]
