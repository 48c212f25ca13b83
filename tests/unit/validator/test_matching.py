from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from validator.fingerprints import Prints, whole_values
from validator.matching import (
    DUPLICATE,
    EXTRA,
    MATCHED,
    WRONG,
    Matching,
    Side,
    identity_codes,
    match,
)
from validator.order import out_of_order

Items = list[tuple[int, str]]


def prints(texts: list[str]) -> Prints:
    return whole_values(pa.array([text.encode() for text in texts], type=pa.binary()))


def side(items: Items) -> Side:
    return Side(
        code=np.array([code for code, _ in items], dtype=np.int64),
        text=prints([text for _, text in items]),
        when=np.arange(len(items)),
    )


def matched(expected: Items, actual: Items) -> Matching:
    return match(side(expected), side(actual))


def kinds(expected: Items, actual: Items) -> list[int]:
    return [int(kind) for kind in matched(expected, actual).kind]


def test_one_of_each_kind() -> None:
    expected = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    actual = [(1, "a"), (2, "x"), (1, "a"), (9, "z"), (4, "d")]
    found = matched(expected, actual)
    assert found.kind.tolist() == [MATCHED, WRONG, DUPLICATE, EXTRA, MATCHED]
    assert found.answer.tolist() == [0, 1, -1, 4]
    assert found.right.tolist() == [True, False, False, True]
    assert found.expected.tolist() == [0, 1, 0, -1, 3]


def test_delivered_twice_expects_two() -> None:
    twice = [(1, "a"), (1, "a")]
    assert kinds(twice, twice) == [MATCHED, MATCHED]
    assert matched(twice, [(1, "a")]).missing.tolist() == [False, True]
    assert kinds(twice, [(1, "a")] * 3) == [MATCHED, MATCHED, DUPLICATE]
    assert kinds(twice, [(1, "x"), (1, "a")]) == [WRONG, MATCHED]


def test_a_right_answer_beats_an_earlier_wrong_one() -> None:
    assert kinds([(1, "a")], [(1, "x"), (1, "a")]) == [EXTRA, MATCHED]


def test_the_first_by_time_answers() -> None:
    late_first = Side(
        code=np.array([1, 1]),
        text=prints(["a", "a"]),
        when=np.array([20, 10]),
    )
    found = match(side([(1, "a")]), late_first)
    assert found.answer.tolist() == [1]
    assert found.kind.tolist() == [DUPLICATE, MATCHED]


def test_one_identity_with_several_texts() -> None:
    expected = [(1, "a"), (1, "b"), (2, "c")]
    assert kinds(expected, [(1, "b"), (1, "a"), (2, "c")]) == [MATCHED] * 3
    assert kinds(expected, [(1, "b"), (1, "x"), (2, "c")]) == [MATCHED, WRONG, MATCHED]
    assert kinds(expected, [(1, "b"), (1, "b"), (2, "c")]) == [MATCHED, DUPLICATE, MATCHED]


small = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=12)


@given(small, small)
def test_counts_agree_with_multisets(expected: Items, actual: Items) -> None:
    found = matched(expected, actual)
    right = Counter(expected) & Counter(actual)
    assert found.count(MATCHED) == right.total() == int(found.right.sum())
    wrong = 0
    groups: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for (code, _), count in (Counter(expected) - right).items():
        groups[code][0] += count
    for item, count in (Counter(actual) - right).items():
        if item not in set(expected):
            groups[item[0]][1] += count
    for left, over in groups.values():
        wrong += min(left, over)
    assert found.count(WRONG) == wrong
    duplicates = sum(
        count for item, count in (Counter(actual) - right).items() if item in set(expected)
    )
    assert found.count(DUPLICATE) == duplicates
    assert int(found.missing.sum()) == len(expected) - right.total() - wrong
    assert found.count(EXTRA) == len(actual) - right.total() - wrong - duplicates
    answers = found.answer[found.answer >= 0]
    assert len(set(answers.tolist())) == len(answers)


@given(
    st.lists(st.tuples(st.integers(-(2**40), 2**40), st.integers(0, 10**18 - 1)), max_size=20),
    st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 5)), max_size=20),
)
def test_codes_are_one_per_identity(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    def columns(items: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        return (
            np.array([w for w, _ in items], dtype=np.int64),
            np.array([n for _, n in items], dtype=np.int64),
        )

    left, right = identity_codes(*columns(one), *columns(two))
    codes = [*left.tolist(), *right.tolist()]
    assert len(set(zip(codes, [*one, *two], strict=True))) == len({*one, *two}) == len(set(codes))


def order(sources: list[int]) -> list[int]:
    count = len(sources)
    found: list[int] = out_of_order(
        np.zeros(count, dtype=np.int64), np.arange(count), np.array(sources, dtype=np.int64)
    ).tolist()
    return found


def test_one_moved_record_is_one_out_of_order() -> None:
    assert order([0, 1, 2, 3]) == []
    assert len(order([1, 0, 2, 3])) == 1
    assert order([1, 2, 3, 0, 4]) == [3]
    assert order([0, 4, 1, 2, 3]) == [1]
    assert len(order([3, 2, 1, 0])) == 3


def test_order_counts_within_a_lane_only() -> None:
    lanes, sources = np.array([0, 1, 0, 1]), np.array([5, 1, 6, 0])
    assert len(out_of_order(lanes, np.arange(4), sources)) == 1
    assert not len(out_of_order(np.arange(4), np.arange(4), sources))
    assert not len(out_of_order(lanes[:0], lanes[:0], lanes[:0]))
