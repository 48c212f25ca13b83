"""Schedules are exact to the record."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sender.profile_options import parse_profile
from sender.profiles import NS_PER_S, Constant, Counts, Nanoseconds
from sender.schedule import NS_PER_MS, Schedule


class Searched:
    """A constant profile without its closed form, so that the search is what is tested."""

    name = "searched"

    def __init__(self, rate: float) -> None:
        self._profile = Constant(rate)

    def count(self, t_ns: Nanoseconds) -> Counts:
        return self._profile.count(t_ns)


def test_the_first_record_is_due_at_the_start_and_the_rest_evenly() -> None:
    schedule = Schedule(Constant(1_000), 2.0)
    assert schedule.total == 2_000
    assert schedule.due_ns(0, 2_000).tolist() == [1_000_000 * i for i in range(2_000)]


@pytest.mark.parametrize("rate", [1, 3, 7, 29, 1_000, 30_000, 99_999])
@pytest.mark.parametrize("profile", [Constant, Searched])
def test_record_i_is_due_at_the_smallest_nanosecond_that_reaches_i(
    rate: int, profile: type
) -> None:
    schedule = Schedule(profile(rate), 3.0)
    due = schedule.due_ns(0, schedule.total)
    ids = np.arange(schedule.total)
    expected = [-(-int(i) * NS_PER_S // rate) for i in ids]
    assert due.tolist() == expected


@given(
    rate=st.floats(0.05, 50_000, allow_nan=False),
    duration_s=st.floats(0.001, 2.0),
)
@settings(max_examples=60)
def test_closed_form_and_search_agree(rate: float, duration_s: float) -> None:
    schedule, searched = Schedule(Constant(rate), duration_s), Schedule(Searched(rate), duration_s)
    assert schedule.total == searched.total
    difference = schedule.due_ns(0, schedule.total) - searched.due_ns(0, searched.total)
    assert np.all(np.abs(difference) <= 1)  # a nanosecond: the two round differently


@given(rate=st.integers(1, 10**6), duration_ms=st.integers(1, 10**7))
@settings(max_examples=200)
def test_a_run_sends_the_floor_of_n_of_d(rate: int, duration_ms: int) -> None:
    exact = Fraction(rate) * Fraction(duration_ms, 1_000)
    assert Schedule(Constant(rate), duration_ms / 1_000).total == exact.__floor__()


@given(hundredths=st.integers(1, 500_000), duration_s=st.integers(1, 4_000))
@example(hundredths=29, duration_s=100)  # 0.29 · 100 is 28.999999999999996 in floating point
@example(hundredths=113, duration_s=100)
@settings(max_examples=200)
def test_a_rate_with_decimals_loses_no_record_to_rounding(hundredths: int, duration_s: int) -> None:
    schedule = Schedule(Constant(hundredths / 100), duration_s)
    total = hundredths * duration_s // 100
    assert schedule.total == total
    first, stop = max(0, total - 50), total
    expected_ms = [i * 100_000 // hundredths for i in range(first, stop)]
    assert (schedule.due_ns(first, stop) // NS_PER_MS).tolist() == expected_ms
    assert sum(schedule.asked_per_second(total)) == total


@pytest.mark.parametrize("tenths", range(1, 400, 3))
@pytest.mark.parametrize("duration_s", [10, 60])
def test_every_profile_sends_the_floor_at_rates_with_decimals(tenths: int, duration_s: int) -> None:
    exact, rate = Fraction(tenths, 10), tenths / 10
    expected = {
        "increasing": exact * duration_s / 2,
        "cosine:amplitude=0.05": exact * duration_s,
        "steps:steps=7": exact * duration_s * 4 / 7,
        "burst-at-start": exact * (25 + duration_s - 5),
        "periodic-bursts": exact * (9 + 5) * (duration_s // 10),
    }
    found = {
        text: Schedule(parse_profile(text, rate=rate, duration_s=duration_s), duration_s).total
        for text in expected
    }
    assert found == {text: records.__floor__() for text, records in expected.items()}


def test_rates_below_one_per_second() -> None:
    schedule = Schedule(Constant(0.1), 35.0)
    assert schedule.total == 3
    assert schedule.due_ns(0, 3).tolist() == [0, 10 * NS_PER_S, 20 * NS_PER_S]


def test_a_late_chunk_is_the_same_as_a_part_of_the_whole() -> None:
    schedule = Schedule(Searched(333.0), 10.0)
    assert schedule.due_ns(1_000, 1_100).tolist() == schedule.due_ns(0, 3_000)[1_000:1_100].tolist()


def test_the_asked_rate_by_second() -> None:
    assert Schedule(Constant(10), 2.5).asked_per_second(25) == [10, 10, 5]
    assert Schedule(Constant(10), 2.5).asked_per_second(13) == [10, 3]
    assert Schedule(Constant(0.5), 6.0).asked_per_second(3) == [1, 0, 1, 0, 1, 0]


def test_the_span_of_records_ends_when_the_next_would_be_due() -> None:
    schedule = Schedule(Constant(4), 10.0)
    assert schedule.span_s(10) == 2.5
    assert schedule.span_s(schedule.total) == 10.0
