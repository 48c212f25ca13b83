"""Every profile's schedule, exact to the record."""

from pathlib import Path

import numpy as np
import pytest

from espbench.errors import EspbenchError, InputError, UsageError
from sender.profile_options import PROFILES, parse_profile
from sender.profiles import NS_PER_S, Piecewise, Profile
from sender.schedule import Schedule


def profile(text: str, rate: float = 100.0, duration_s: float = 20.0) -> Profile:
    return parse_profile(text, rate=rate, duration_s=duration_s)


def totals_by_second(text: str, **more: float) -> list[int]:
    schedule = Schedule(profile(text, **more), more.get("duration_s", 20.0))
    due = schedule.due_ns(0, schedule.total)
    return [int(count) for count in np.bincount(due // NS_PER_S)]


@pytest.fixture
def rates_file(tmp_path: Path) -> Path:
    path = tmp_path / "rates.csv"
    path.write_text("0,10\n5,0\n7,30\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", sorted(set(PROFILES) - {"csv"}))
def test_every_profile_keeps_the_contract(name: str) -> None:
    made = profile(name)
    assert made.name == name
    t_ns = np.linspace(0, 20 * NS_PER_S, 5_000).astype(np.int64)
    counts = made.count(t_ns)
    assert counts[0] == 0
    assert np.all(np.diff(counts) >= 0)
    assert np.array_equal(counts, profile(name).count(t_ns))

    schedule = Schedule(made, 20.0)
    due = schedule.due_ns(0, schedule.total)
    assert due[0] == 0
    assert np.all(np.diff(due) >= 0)
    ids = np.arange(schedule.total)
    assert np.all(made.count(due) >= ids)
    later = due > 0
    assert np.all(made.count(due[later] - 1) < ids[later])


def test_increasing_reaches_half_the_records_of_the_high_rate() -> None:
    schedule = Schedule(profile("increasing", duration_s=10.0), 10.0)
    assert schedule.total == 500
    # N(t) = 5 t²: record 125 is due after 5 s, record 320 after 8 s.
    assert schedule.due_ns(125, 126)[0] == 5 * NS_PER_S
    assert schedule.due_ns(320, 321)[0] == 8 * NS_PER_S


def test_decreasing_mirrors_it() -> None:
    rising, falling = totals_by_second("increasing"), totals_by_second("decreasing")
    assert all(abs(a - b) <= 1 for a, b in zip(rising, reversed(falling), strict=True))


def test_cosine_swings_around_its_mean() -> None:
    seconds = totals_by_second("cosine:amplitude=80,period=10")
    assert abs(sum(seconds) - 2_000) <= 1
    assert min(seconds) < 30
    assert max(seconds) > 170


def test_steps() -> None:
    schedule = Schedule(profile("steps:low=10,high=30,steps=3", duration_s=9.0), 9.0)
    assert schedule.asked_per_second(schedule.total) == [10] * 3 + [20] * 3 + [30] * 3


def test_bursts() -> None:
    start = Schedule(profile("burst-at-start:burst=3,seconds=2", duration_s=4.0), 4.0)
    assert start.asked_per_second(start.total) == [300, 300, 100, 100]
    periodic = Schedule(profile("periodic-bursts:burst=2,seconds=1,period=3", duration_s=6.0), 6.0)
    assert periodic.asked_per_second(periodic.total) == [100, 100, 200, 100, 100, 200]


def test_a_random_walk_is_its_seed() -> None:
    assert totals_by_second("random-walk:seed=1") == totals_by_second("random-walk:seed=1")
    assert totals_by_second("random-walk:seed=1") != totals_by_second("random-walk:seed=2")


def test_rates_from_a_file_with_a_pause(rates_file: Path) -> None:
    schedule = Schedule(profile(f"csv:file={rates_file}", duration_s=9.0), 9.0)
    assert schedule.total == 50 + 60
    due = schedule.due_ns(0, schedule.total)
    # Record 50 completes the count of the first piece exactly at its end; 51 waits for the third.
    assert due[50] == 5 * NS_PER_S
    assert due[51] == 7 * NS_PER_S + -(-NS_PER_S // 30)


def test_pieces_add_up_exactly() -> None:
    made = Piecewise("steps", [0, 1, 2], [10, 1_000, 7])
    t_ns = np.array([0, 1, 2, 3]) * NS_PER_S
    assert made.count(t_ns).tolist() == [0, 10, 1_010, 1_017]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sawtooth", "there is no load profile 'sawtooth'"),
        ("constant:low=1", "cannot use 'low=1'"),
        ("increasing:low", "cannot use 'low'"),
        ("increasing:low=few", "low=few is not a number"),
        ("increasing:low=-1", "low=-1 is not allowed"),
        ("cosine:amplitude=101", "above the mean rate"),
        ("cosine:period=0", "period=0 is not allowed"),
        ("periodic-bursts:seconds=10,period=10", "as long as its period"),
    ],
)
def test_wrong_profiles_are_named(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        profile(text)


@pytest.mark.parametrize("content", ["", "1,10\n", "0,10\n0,20\n", "0,ten\n", "0,-1\n", "0\n"])
def test_a_wrong_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"rates\.csv"):
        profile(f"csv:file={path}")
    with pytest.raises(EspbenchError):
        profile("csv:file=/nowhere.csv")
