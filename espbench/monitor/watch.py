"""The loop: sample on the beat until a signal, the end of what is watched, or time is up."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

from espbench.monitor.sampler import Row, Sampler

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
Pause = Callable[[float], bool]


@contextmanager
def until_signal() -> Iterator[Pause]:
    """Give a pause of some seconds that ends early, with True, once a signal to stop has come.

    A handler that raised could tear a sample or a file apart; this one only wakes the pause.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    # Before the handlers: from the first signal on, the pipe knows.
    wakeup = signal.set_wakeup_fd(writer)
    old = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}

    def pause(seconds: float) -> bool:
        return bool(select.select([reader], [], [], max(0.0, seconds))[0])

    try:
        yield pause
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(reader)
        os.close(writer)


def watch(
    sampler: Sampler,
    pause: Pause,
    keep: Callable[[list[Row]], None],
    *,
    interval_s: float = 1.0,
    duration_s: float | None = None,
    ends_with: int | None = None,
) -> int:
    """Sample every `interval_s`; returns the number of samples kept.

    Beats are fixed from the start; those that a busy machine made us miss are left out. Ends when
    `pause` says so, after `duration_s`, or once the process `ends_with` is gone; each time after
    one more sample, so that the end is seen.
    """
    begin = time.monotonic()
    samples, beat, over = 0, 0, False
    sampler.sample()
    while not over:
        beat = max(beat, int((time.monotonic() - begin) / interval_s)) + 1
        stopped = pause(begin + beat * interval_s - time.monotonic())
        passed = time.monotonic() - begin
        over = (
            stopped
            or (duration_s is not None and passed >= duration_s)
            or (ends_with is not None and not psutil.pid_exists(ends_with))
        )
        rows = sampler.sample()
        keep(rows)
        samples += bool(rows)
    return samples
