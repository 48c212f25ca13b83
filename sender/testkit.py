"""For tests: a clock that moves when told, a client that takes and fails on cue, rows."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sender.clients import Tally

START_MS = 1_700_000_000_000


@dataclass
class FakeClock:
    """Time passes only by sleeping, or when a test moves `now` (epoch ns)."""

    now: int = START_MS * 1_000_000

    def now_ns(self) -> int:
        """The time as it stands."""
        return self.now

    def sleep_ns(self, duration_ns: int) -> None:
        """Sleep: move the time."""
        self.now += duration_ns


@dataclass
class FakeClient:
    """Keeps what it is handed: (topic, partition, value, epoch ns).

    `room` limits its queue, `on_hand` is called before every handover and may change anything.
    """

    clock: FakeClock
    room: int | None = None
    on_hand: Callable[["FakeClient"], None] = lambda _client: None
    records: list[tuple[str, int, bytes, int]] = field(default_factory=list)
    failure: str | None = None
    failed: Counter[int] = field(default_factory=Counter)

    def connect(self, topics: Sequence[str], timeout_s: float) -> None:
        """Nothing to connect to."""

    def hand(self, topic: str, partition: int, values: list[bytes]) -> int:
        """Take what there is room for."""
        self.on_hand(self)
        taken = values if self.room is None else values[: self.room]
        if self.room is not None:
            self.room -= len(taken)
        self.records += [(topic, partition, value, self.clock.now) for value in taken]
        return len(taken)

    def serve(self) -> None:
        """Nothing to serve."""

    def finish(self, timeout_s: float, stop: Callable[[], bool]) -> None:
        """Nothing is outstanding."""

    def tally(self, topic: str) -> Tally:
        """What was handed; `failed` as the test set it."""
        handed = Counter(partition for name, partition, _, _ in self.records if name == topic)
        return Tally(handed, self.failed, None)


def sensor_row(index: int, columns: int = 57, workplace: int = 1) -> bytes:
    """A made-up sensor row with so many columns; column 57 is the workplace."""
    cells = [b"2012-02-22T16:46:28.9670320+00:00", b"%d" % index, *([b"1"] * 54)][:columns]
    if columns > len(cells):
        cells += [b"%d" % workplace] * (columns - len(cells))
    return b"\t".join(cells)


def sensor_rows(count: int, workplace: int = 1) -> bytes:
    """A whole sensor file."""
    return b"".join(sensor_row(index, workplace=workplace) + b"\n" for index in range(count))
