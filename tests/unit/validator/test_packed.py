"""Packed columns hold what they were given; work ahead keeps the order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from validator.ahead import ahead
from validator.packed import Packed

LIMIT = 2**63
NEAR = st.integers(0, 300) | st.integers(-(2**17), 2**33) | st.integers(-LIMIT, LIMIT - 1)


@given(st.lists(st.lists(NEAR, max_size=5)))
def test_integers_come_back(parts: list[list[int]]) -> None:
    packed = Packed()
    for part in parts:
        packed.add(np.array(part, dtype=np.int64))
    assert packed.all().tolist() == [number for part in parts for number in part]
    assert len(packed) == len(packed.all())
    assert packed.all().dtype == np.int64


@given(st.lists(st.booleans()))
def test_truth_values_come_back(values: list[bool]) -> None:
    found = Packed.of(np.array(values, dtype=np.bool_)).all()
    assert (found.dtype, found.tolist()) == (np.dtype(np.bool_), values)


def test_fractions_and_great_numbers_come_back() -> None:
    for values in (np.array([0.5, -1e300, 7.0]), np.array([2**64 - 1, 0, 5], dtype=np.uint64)):
        found = Packed.of(values).all()
        assert (found.dtype, found.tolist()) == (values.dtype, values.tolist())


@given(st.lists(st.lists(NEAR, max_size=5)), st.lists(st.integers(0, 10**6)), st.booleans())
def test_some_rows(parts: list[list[int]], places: list[int], rising: bool) -> None:
    packed = Packed()
    for part in parts:
        packed.add(np.array(part, dtype=np.int64))
    rows = np.array([place % len(packed) for place in places if len(packed)], dtype=np.int64)
    if rising:
        rows.sort()
    assert packed.at(rows).tolist() == packed.all()[rows].tolist()


def test_neighbours_take_two_bytes_at_most() -> None:
    packed = Packed.of(10**12 + np.arange(100_000))
    kept = [above for _, _, above in packed.parts if above is not None]
    assert sum(above.nbytes for above in kept) == 200_000
    assert Packed.of(np.full(100_000, 7)).parts[0][2] is None


def test_work_ahead_keeps_the_order_and_raises_what_it_raises() -> None:
    assert list(ahead(range(100), lambda n: n * n)) == [(n, n * n) for n in range(100)]
    with pytest.raises(ZeroDivisionError):
        list(ahead([1, 0], lambda n: 1 // n))
