"""The loop around the samples: beats, signals, ends."""

import os
import signal
import subprocess
import sys
import time

import pytest

from espbench.monitor.components import Finder
from espbench.monitor.sampler import Row, Sampler
from espbench.monitor.watch import until_signal, watch


class CountingSampler(Sampler):
    """Rows that cost nothing; the first sample has none."""

    def __init__(self) -> None:
        super().__init__(Finder({}), "here")
        self.taken = 0

    def sample(self) -> list[Row]:
        self.taken += 1
        return [{"component": "host"}] if self.taken > 1 else []


def test_it_samples_on_the_beat_until_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    pauses = []

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        # The machine is busy once: the beats at 2 and 3 are missed.
        clock[0] += 2.5 if len(pauses) == 2 else seconds
        return False

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    kept: list[list[Row]] = []
    samples = watch(CountingSampler(), pause, kept.append, interval_s=1.0, duration_s=5.0)
    assert samples == len(kept) == 4
    assert pauses == [1.0, 1.0, 0.5, 1.0]


def test_a_signal_ends_the_pause_and_breaks_nothing() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with until_signal() as pause:
        assert not pause(0)
        os.kill(os.getpid(), signal.SIGTERM)
        begin = time.monotonic()
        assert pause(60)
        assert time.monotonic() - begin < 30
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_last_sample_is_taken_after_the_signal() -> None:
    kept: list[list[Row]] = []
    assert watch(CountingSampler(), lambda _seconds: True, kept.append) == 1
    assert len(kept) == 1


def test_it_ends_with_the_process_that_it_watches() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    kept: list[list[Row]] = []
    assert watch(CountingSampler(), lambda _seconds: False, kept.append, ends_with=child.pid) == 1
