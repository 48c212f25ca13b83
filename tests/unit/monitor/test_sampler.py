"""Rates from counters, with a table and a clock of our own."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from espbench.monitor import processes
from espbench.monitor.components import Finder
from espbench.monitor.processes import Process
from espbench.monitor.sampler import Row, Sampler
from espbench.monitor.switches import EVERY_S, Switches

ROOT, CHILD, GRANDCHILD = 500_001, 500_002, 500_003


def process(
    pid: int, parent: int, own_s: float, rss: int = 0, started: float = 1.0, waited_s: float = 0.0
) -> Process:
    return Process(pid, parent, started, "python", own_s + waited_s, 2, rss, waited_s)


class World:
    """A process table, disk counters and a clock that tests move."""

    def __init__(self) -> None:
        self.members: list[Process] = []
        self.disk: dict[int, tuple[int, int]] = {}
        self.shared: dict[int, int] = {}
        self.moment = 0.0
        self.sampler = Sampler(Finder({"mine": ROOT}), "here", "identity")

    def step(self, *members: Process, seconds: float = 1.0) -> Row | None:
        self.members = list(members)
        self.moment += seconds
        rows = [row for row in self.sampler.sample() if row["component"] == "mine"]
        return rows[0] if rows else None


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World()
    monkeypatch.setattr(processes, "table", lambda: {one.pid: one for one in made.members})
    monkeypatch.setattr(processes, "disk_bytes", made.disk.get)
    monkeypatch.setattr(processes, "shared_bytes", lambda pid: made.shared.get(pid, 0))
    monkeypatch.setattr(time, "monotonic", lambda: made.moment)
    yield made
    made.sampler.close()


def test_rates_are_per_second_and_over_the_whole_tree(world: World) -> None:
    world.disk |= {ROOT: (1_000, 0), CHILD: (0, 0)}
    assert world.step(process(ROOT, 1, 5.0), process(CHILD, ROOT, 1.0)) is None
    world.disk |= {ROOT: (3_000, 0), CHILD: (0, 600)}
    row = world.step(process(ROOT, 1, 6.0), process(CHILD, ROOT, 1.5), seconds=2)
    assert row is not None
    assert row["cpu_percent"] == pytest.approx(75)
    assert (row["read_bytes"], row["written_bytes"]) == (1_000, 300)
    assert (row["threads"], row["host"], row["query"]) == (4, "here", "identity")


def test_a_child_that_ends_is_not_counted_twice(world: World) -> None:
    world.step(process(ROOT, 1, 5.0), process(CHILD, ROOT, 3.0))
    # The parent has waited for it: its 3.0 s and the 0.2 s that it used since are in its sum.
    row = world.step(process(ROOT, 1, 5.1, waited_s=3.2))
    assert row is not None
    assert row["cpu_percent"] == pytest.approx(30)


def test_a_line_that_ends_between_two_samples_is_not_counted_twice(world: World) -> None:
    # As a query and its JVM do: the query waited for it, and was then waited for itself.
    world.step(process(ROOT, 1, 5.0), process(CHILD, ROOT, 2.0), process(GRANDCHILD, CHILD, 42.0))
    row = world.step(process(ROOT, 1, 5.0, waited_s=2.1 + 42.3))
    assert row is not None
    assert row["cpu_percent"] == pytest.approx(40)


def test_a_parent_that_was_read_before_it_waited_does_not_count_twice(world: World) -> None:
    world.step(process(ROOT, 1, 5.0), process(CHILD, ROOT, 42.0))
    first = world.step(process(ROOT, 1, 5.0))
    second = world.step(process(ROOT, 1, 5.0, waited_s=42.3))
    third = world.step(process(ROOT, 1, 5.0, waited_s=42.8))
    assert first is not None
    assert second is not None
    assert third is not None
    assert [first["cpu_percent"], second["cpu_percent"], third["cpu_percent"]] == pytest.approx(
        [0, 30, 50]
    )


def test_all_processes_are_summed_by_their_own_counters(world: World) -> None:
    def of_all(*members: Process) -> float:
        world.members = list(members)
        world.moment += 1.0
        rows = {row["component"]: row for row in world.sampler.sample()}
        return float(rows["host"]["processes_percent"])

    stranger, init = 600_001, 1
    line = process(CHILD, ROOT, 2.0), process(GRANDCHILD, CHILD, 42.0)
    world.step(process(init, 0, 1.0), process(ROOT, init, 5.0), *line, process(stranger, init, 7.0))
    # A line is killed and falls to init, a stranger works on.
    busy = process(init, 0, 1.0, waited_s=44.1), process(ROOT, init, 5.2)
    assert of_all(*busy, process(stranger, init, 7.5)) == pytest.approx(80)
    # The stranger ends; it is seen in init only in the next sample.
    assert of_all(*busy) == pytest.approx(0)
    late = process(init, 0, 1.0, waited_s=44.1 + 7.6), process(ROOT, init, 5.2)
    assert of_all(*late) == pytest.approx(10)


def test_of_a_child_between_two_samples_the_parent_tells(world: World) -> None:
    world.step(process(ROOT, 1, 5.0))
    row = world.step(process(ROOT, 1, 5.0, waited_s=0.4))
    assert row is not None
    assert row["cpu_percent"] == pytest.approx(40)


def test_a_child_that_nobody_waited_for_takes_nothing_from_others(world: World) -> None:
    world.step(process(ROOT, 1, 5.0), process(CHILD, ROOT, 3.0))
    row = world.step(process(ROOT, 1, 5.2))
    assert row is not None
    assert row["cpu_percent"] == pytest.approx(20)


def test_a_new_process_counts_from_its_start(world: World) -> None:
    world.step(process(ROOT, 1, 5.0))
    world.disk[CHILD] = (0, 500)
    row = world.step(process(ROOT, 1, 5.0), process(CHILD, ROOT, 0.5))
    assert row is not None
    assert (row["cpu_percent"], row["written_bytes"]) == (50, 500)


def test_a_pid_that_is_used_again_is_another_process(world: World) -> None:
    world.step(process(ROOT, 1, 5.0), process(CHILD, ROOT, 9.0))
    again = process(CHILD, ROOT, 0.25, started=2.0)
    row = world.step(process(ROOT, 1, 5.0, waited_s=9.0), again)
    assert row is not None
    assert row["cpu_percent"] == pytest.approx(25)


def test_a_component_that_vanishes_and_comes_back(world: World) -> None:
    assert world.step(process(ROOT, 1, 5.0)) is None
    assert world.step() is None
    assert world.step(process(ROOT, 1, 0.1, started=3.0)) is not None


def test_memory_that_processes_share_counts_once(world: World) -> None:
    world.shared |= {ROOT: 600, CHILD: 500}
    world.step()
    row = world.step(process(ROOT, 1, 0.0, rss=1_000), process(CHILD, ROOT, 0.0, rss=700))
    assert row is not None
    assert row["rss_bytes"] == 400 + 200 + 600


def test_what_is_unknown_is_null_not_nothing(world: World) -> None:
    world.step(process(ROOT, 1, 5.0))
    row = world.step(process(ROOT, 1, 5.0))
    assert row is not None
    assert row["read_bytes"] is None
    assert row["gc_ms"] is None
    assert "voluntary_switches" not in row


def test_the_host_has_a_row_of_its_own() -> None:
    real = Sampler(Finder({}), "here")
    assert real.sample() == []
    time.sleep(0.05)
    host = next(row for row in real.sample() if row["component"] == "host")
    assert host["rss_bytes"] > 0
    assert host["net_sent_bytes"] >= 0
    assert host["cpu_percent"] >= 0
    assert host["context_switches"] > 0


def test_switches_are_counted_by_thread_every_few_seconds() -> None:
    counts: dict[int, dict[int, tuple[int, int]]] = {ROOT: {1: (10, 1), 2: (5, 0)}}
    switches = Switches(lambda pid: counts.get(pid, {}))
    root = process(ROOT, 1, 0.0)
    components = {ROOT: "mine"}
    assert switches.rates(0.0, {ROOT: root}, components) == {}
    assert switches.rates(1.0, {ROOT: root}, components) == {}
    counts[ROOT] = {1: (30, 1), 3: (5, 10)}
    assert switches.rates(EVERY_S, {ROOT: root}, components) == {"mine": (5.0, 2.0)}
    # A process that stood there before it was ours begins with what it has.
    late = replace(process(CHILD, 1, 0.0))
    both = {ROOT: root, CHILD: late}
    switches.rates(2 * EVERY_S, both, components)
    counts[CHILD] = {9: (1_000, 1_000)}
    assert switches.rates(3 * EVERY_S, both, {CHILD: "late"}) == {}
    counts[CHILD] = {9: (1_005, 1_000)}
    assert switches.rates(4 * EVERY_S, both, {CHILD: "late"}) == {"late": (1.0, 0.0)}
