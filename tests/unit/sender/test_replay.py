"""The open loop, by a clock that the test moves."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sender.files import open_stream_file
from sender.profiles import Constant
from sender.replay import Ending, next_tick_ns, replay
from sender.schedule import Schedule
from sender.stream import StreamReplay
from sender.testkit import START_MS, FakeClient, FakeClock, sensor_row, sensor_rows

MS = 1_000_000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sensor_file(tmp_path: Path) -> Path:
    path = tmp_path / "sensor-1.csv"
    path.write_bytes(sensor_rows(7))
    return path


def stream_of(
    path: Path, rate: float, duration_s: float, *, stream: int = 1, partitions: int = 1
) -> StreamReplay:
    return StreamReplay(
        file=open_stream_file(path, stream),
        topic=f"t-{stream}",
        partitions=partitions,
        schedule=Schedule(Constant(rate), duration_s),
        start_ms=START_MS,
    )


def run(
    clock: FakeClock,
    client: FakeClient,
    *streams: StreamReplay,
    stop: Callable[[], bool] = lambda: False,
    give_up_s: float = 100.0,
) -> Ending:
    return replay(
        streams,
        client,
        clock,
        start_ns=START_MS * MS,
        tick_ns=MS,
        give_up_ns=round(give_up_s * 1e9),
        stop=stop,
        progress=lambda _done: None,
    )


def test_messages_are_id_due_line(clock: FakeClock, sensor_file: Path) -> None:
    client = FakeClient(clock)
    assert run(clock, client, stream_of(sensor_file, 1_000, 0.02)) == Ending()
    assert [value for _, _, value, _ in client.records] == [
        b"%d;%d;%b" % (i, START_MS + i, sensor_row(i % 7)) for i in range(20)
    ]


def test_a_punctual_clock_hands_every_record_over_when_it_is_due(
    clock: FakeClock, sensor_file: Path
) -> None:
    client = FakeClient(clock)
    clock.now -= 500 * MS  # the start lies ahead
    stream = stream_of(sensor_file, 400, 1.0)
    run(clock, client, stream)
    assert [at - START_MS * MS for _, _, _, at in client.records] == [
        i * 2_500_000 for i in range(400)
    ]
    assert stream.lateness.summary_ms()["max"] == 0
    assert stream.per_second() == [400]


def test_many_records_are_handed_over_on_a_grid(clock: FakeClock, sensor_file: Path) -> None:
    client = FakeClient(clock)
    stream = stream_of(sensor_file, 10_000, 0.1)
    run(clock, client, stream)
    times = [at - START_MS * MS for _, _, _, at in client.records]
    assert all(at % MS == 0 for at in times)
    assert all(0 <= at - i * 100_000 < MS for i, at in enumerate(times))


def test_a_late_sender_catches_up_and_never_shifts_the_schedule(
    clock: FakeClock, sensor_file: Path
) -> None:
    def hiccup(client: FakeClient) -> None:
        if len(client.records) == 100:
            clock.now += 300 * MS

    client = FakeClient(clock, on_hand=hiccup)
    stream = stream_of(sensor_file, 1_000, 1.0)
    run(clock, client, stream)
    assert len(client.records) == 1_000
    due = [int(value.split(b";")[1]) for _, _, value, _ in client.records]
    assert due == [START_MS + i for i in range(1_000)]
    assert client.records[-1][3] == (START_MS + 999) * MS
    assert stream.lateness.summary_ms()["max"] == 300
    assert stream.per_second() == [1_000]


def test_partitions_by_id_and_pairs_of_production_times(clock: FakeClock, tmp_path: Path) -> None:
    sensors = tmp_path / "s.csv"
    sensors.write_bytes(b"".join(sensor_row(i) + b"\n" for i in range(10)))
    times = tmp_path / "pt.csv"
    times.write_bytes(b"".join(b"%d\t1\t1\t%d\n" % (i // 2, i % 2) for i in range(50)))
    client = FakeClient(clock)
    run(
        clock,
        client,
        stream_of(sensors, 10_000, 0.01, partitions=3),
        stream_of(times, 10_000, 0.005, stream=3, partitions=3),
    )
    for topic, by in (("t-1", 1), ("t-3", 2)):
        sent = [(int(v.split(b";")[0]), p) for t, p, v, _ in client.records if t == topic]
        assert {i: i // by % 3 for i, _ in sent} == dict(sent)
        for partition in range(3):
            ids = [i for i, p in sent if p == partition]
            assert ids == sorted(ids)
            assert ids


def test_production_times_end_with_their_file(clock: FakeClock, tmp_path: Path) -> None:
    path = tmp_path / "pt.csv"
    path.write_bytes(b"".join(b"%d\t1\t1\t%d\n" % (i // 2, i % 2) for i in range(10)))
    client = FakeClient(clock)
    stream = stream_of(path, 100, 1.0, stream=3)
    assert run(clock, client, stream) == Ending()
    assert len(client.records) == 10
    assert stream.ended_early


def test_a_full_queue_is_counted_and_nothing_is_lost(clock: FakeClock, sensor_file: Path) -> None:
    def room_comes(client: FakeClient) -> None:
        if clock.now >= (START_MS + 50) * MS:
            client.room = None

    client = FakeClient(clock, room=25, on_hand=room_comes)
    stream = stream_of(sensor_file, 10_000, 0.1)
    assert run(clock, client, stream) == Ending()
    ids = [int(value.split(b";")[0]) for _, _, value, _ in client.records]
    assert ids == list(range(1_000))
    assert stream.stalls > 1


def test_a_failure_ends_the_loop(clock: FakeClock, sensor_file: Path) -> None:
    def fail(client: FakeClient) -> None:
        if len(client.records) >= 50:
            client.failure = "timed out"

    client = FakeClient(clock, on_hand=fail)
    ending = run(clock, client, stream_of(sensor_file, 1_000, 1.0))
    assert ending == Ending(failure="timed out")
    assert len(client.records) < 100


def test_a_stop_ends_the_loop(clock: FakeClock, sensor_file: Path) -> None:
    client = FakeClient(clock)
    stream = stream_of(sensor_file, 1_000, 1.0)
    ending = run(clock, client, stream, stop=lambda: len(client.records) >= 30)
    assert ending == Ending(interrupted=True)
    assert stream.next_id == len(client.records) == 30


def test_a_hopeless_sender_gives_up(clock: FakeClock, sensor_file: Path) -> None:
    client = FakeClient(clock, room=10)
    ending = run(clock, client, stream_of(sensor_file, 1_000, 1.0), give_up_s=2.0)
    assert ending == Ending(gave_up=True)
    assert len(client.records) == 10


def test_streams_have_rates_of_their_own(clock: FakeClock, tmp_path: Path) -> None:
    for number in (1, 2):
        rows = b"".join(sensor_row(i, workplace=number) + b"\n" for i in range(5))
        (tmp_path / f"{number}.csv").write_bytes(rows)
    client = FakeClient(clock)
    run(
        clock,
        client,
        stream_of(tmp_path / "1.csv", 1_000, 0.5),
        stream_of(tmp_path / "2.csv", 100, 0.5, stream=2),
    )
    topics = [topic for topic, _, _, _ in client.records]
    assert (topics.count("t-1"), topics.count("t-2")) == (500, 50)


@pytest.mark.parametrize(
    ("now", "due", "expected"),
    [(0, 5_000_000, 5_000_000), (0, 2_333_333, 2_333_333), (100, 200, MS), (MS, 900_000, 2 * MS)],
)
def test_the_next_tick(now: int, due: int, expected: int) -> None:
    assert next_tick_ns(now, due, MS) == expected
