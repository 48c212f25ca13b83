"""Every profile's schedule, exact to the record."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from espbench.errors import EspbenchError, InputError, MachineError, UsageError
from sender.drawn import write_schedule
from sender.files import open_stream_file
from sender.profile_options import PROFILES, parse_profile
from sender.profiles import NS_PER_S, Piecewise, Profile
from sender.replay import Ending, replay
from sender.schedule import Schedule
from sender.stream import StreamReplay
from sender.testkit import START_MS, FakeClient, FakeClock, sensor_rows


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


# N(t) of every profile at 100/s over 20 s, written down a second time, exactly and independently:
# (from second, rate at its start, change of the rate per second).
PIECES: dict[str, list[tuple[int, int, int]]] = {
    "constant": [(0, 100, 0)],
    "increasing": [(0, 0, 5)],
    "decreasing": [(0, 100, -5)],
    "steps": [(0, 20, 0), (4, 40, 0), (8, 60, 0), (12, 80, 0), (16, 100, 0)],
    "burst-at-start": [(0, 500, 0), (5, 100, 0)],
    "periodic-bursts": [(0, 100, 0), (9, 500, 0), (10, 100, 0), (19, 500, 0)],
    "csv": [(0, 10, 0), (5, 0, 0), (7, 30, 0)],
}


def exact_count(name: str, t: Fraction) -> Fraction:
    total = Fraction(0)
    pieces = PIECES[name]
    for index, (begin, rate, change) in enumerate(pieces):
        end = min(t, Fraction(pieces[index + 1][0])) if index + 1 < len(pieces) else t
        if end > begin:
            total += rate * (end - begin) + Fraction(change) * (end - begin) ** 2 / 2
    return total


@pytest.mark.parametrize("name", sorted(PIECES))
def test_a_fake_clock_sees_every_record_at_its_exact_moment(
    name: str, rates_file: Path, tmp_path: Path
) -> None:
    """Handed over in the first nanosecond that reaches the record, and not one before."""
    text = f"csv:file={rates_file}" if name == "csv" else name
    clock = FakeClock()
    client = FakeClient(clock)
    path = tmp_path / "sensor-1.csv"
    path.write_bytes(sensor_rows(3))
    stream = StreamReplay(
        file=open_stream_file(path, 1),
        topic="t",
        partitions=1,
        schedule=Schedule(profile(text), 20.0),
        start_ms=START_MS,
    )
    ending = replay(
        [stream],
        client,
        clock,
        start_ns=START_MS * 1_000_000,
        tick_ns=1,
        give_up_ns=10**12,
        stop=lambda: False,
        progress=lambda _done: None,
    )
    assert ending == Ending()
    assert len(client.records) == exact_count(name, Fraction(20)).__floor__()
    for number, (_, _, value, at) in enumerate(client.records):
        due_ns = at - START_MS * 1_000_000
        assert exact_count(name, Fraction(due_ns + 1, NS_PER_S)) >= number
        assert not due_ns or exact_count(name, Fraction(due_ns - 1, NS_PER_S)) < number
        assert value.split(b";")[:2] == [b"%d" % number, b"%d" % (at // 1_000_000)]


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


def test_noise_is_seeded_around_the_same_mean_and_never_negative() -> None:
    plain = totals_by_second("cosine:mean=1000,amplitude=900", duration_s=60.0)
    noisy = totals_by_second("cosine:mean=1000,amplitude=900,noise=50,seed=1", duration_s=60.0)
    assert noisy == totals_by_second(
        "cosine:mean=1000,amplitude=900,noise=50,seed=1", duration_s=60.0
    )
    assert noisy != totals_by_second(
        "cosine:mean=1000,amplitude=900,noise=50,seed=2", duration_s=60.0
    )
    differences = np.array(noisy) - np.array(plain)
    assert 20 < differences.std() < 100
    wild = profile("cosine:amplitude=100,noise=1000")
    t_ns = np.linspace(0, 20 * NS_PER_S, 20_001).astype(np.int64)
    assert np.all(np.diff(wild.count(t_ns)) >= -1e-9)


def test_the_drawn_schedule_is_kept_to_the_record(tmp_path: Path) -> None:
    schedule = Schedule(profile("cosine:noise=20"), 20.0)
    out = tmp_path / "schedule.csv"
    write_schedule(out, {1: schedule, 2: Schedule(profile("constant", rate=0.3), 20.0)})
    rows = [line.split(",") for line in out.read_text(encoding="utf-8").splitlines()]
    assert rows.pop(0) == ["stream", "ms", "due"]
    first = [(int(ms), int(due)) for stream, ms, due in rows if stream == "1"]
    due_ns = schedule.due_ns(0, schedule.total)
    assert first[0] == (0, 0)
    assert first[-1] == (20_000, schedule.total)
    assert all(due == np.sum(due_ns < ms * 1_000_000) for ms, due in first)
    assert [due for stream, _, due in rows if stream == "2"][-1] == "6"
    with pytest.raises(MachineError, match="cannot write the schedule"):
        write_schedule(tmp_path / "missing" / "schedule.csv", {1: schedule})


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
    made = Piecewise([0, 1, 2], [10, 1_000, 7])
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
