"""Writing at a rate, in rounds: the schedule stands still while the data are made usable again."""

from pathlib import Path

import pytest

from espbench.databases.feed import Feed
from espbench.databases.replay import Pace, Replayed, replay
from espbench.databases.search import is_sustained, search
from espbench.errors import InputError

LINES = 100
RENEWAL_NS = 7_000_000_000


class SlowClock:
    """Time that passes only by sleeping and by work."""

    def __init__(self) -> None:
        self.ns = 0

    def now_ns(self) -> int:
        return self.ns

    def sleep_ns(self, duration_ns: int) -> None:
        self.ns += duration_ns


class Database:
    """Takes `most_per_s` lines a second, each line once a round."""

    def __init__(self, path: Path, most_per_s: float) -> None:
        self.clock, self.most_per_s = SlowClock(), most_per_s
        self.stamped: set[bytes] = set()
        self.renewals = 0
        self.update_s = self.commit_s = 0.0
        path.write_bytes(b"".join(b"%d\t1\t1\t0\n" % line for line in range(LINES)))
        self.feed = Feed(path, self.renew)

    def renew(self) -> None:
        self.renewals += 1
        self.stamped.clear()
        self.clock.ns += RENEWAL_NS

    def stamp(self, lines: bytes) -> int:
        found = lines.splitlines()
        assert not self.stamped.intersection(found), "a line twice without a renewal"
        self.stamped.update(found)
        self.clock.ns += round(len(found) / self.most_per_s * 1e9)
        return 0

    def write(self, rate: float, seconds: float) -> Replayed:
        lines = self.feed.take(round(rate * seconds))
        pace = Pace(rate, 0.1, give_up_s=1.5)
        return replay(self, self.feed, lines, pace, self.clock)


def test_more_records_than_lines_go_in_rounds_and_renewals_count_in_no_time(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path / "p.csv", most_per_s=1_000.0)
    outcome = database.write(200.0, 3.0)
    assert (outcome.written, outcome.rounds, database.renewals) == (600, 6, 5)
    assert is_sustained(outcome)
    assert outcome.committed_s()[-1] < 3.5, "the renewals' seconds are not in it"
    # Each batch stays within one round.
    assert all((stop - 1) // LINES == first // LINES for first, stop, *_ in outcome.batches)
    # The next step begins with usable lines.
    again = database.write(20.0, 3.0)
    assert (again.written, again.rounds) == (60, 1)
    assert is_sustained(again)


def test_the_highest_rate_is_found_though_the_data_are_few(tmp_path: Path) -> None:
    database = Database(tmp_path / "p.csv", most_per_s=1_000.0)
    found = search(50.0, 100_000.0, lambda rate: is_sustained(database.write(rate, 3.0)))
    assert not found.limited
    assert found.sustained is not None
    assert found.failed is not None
    assert 800 < found.sustained <= 1_050 < found.failed < 1_500


def test_a_file_without_lines_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.touch()
    with pytest.raises(InputError, match="no production times"):
        Feed(path, lambda: None)
