"""The open loop: hand every record over when it is due, whatever became of those before it.

The loop never moves the schedule. When it is late (a busy machine, a full queue) it hands over
all that is due as fast as it can, and the lateness tells.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sender.clients import Client
from sender.clock import Clock
from sender.stream import StreamReplay

_STALL_NS = 1_000_000
_LONGEST_SLEEP_NS = 100_000_000
_PROGRESS_NS = 250_000_000
# How long another thread of ours (a progress bar) may keep the interpreter from the loop.
_SWITCH_INTERVAL_S = 0.0005


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the loop ended; with nothing set, because everything was handed over."""

    interrupted: bool = False
    gave_up: bool = False
    failure: str | None = None
    broken_file: str | None = None


def merged(endings: Sequence[Ending]) -> Ending:
    """How several processes ended together; one failure explains why the others were stopped."""
    failure = next((each.failure for each in endings if each.failure), None)
    broken_file = next((each.broken_file for each in endings if each.broken_file), None)
    explained = failure or broken_file
    return Ending(
        interrupted=not explained and any(each.interrupted for each in endings),
        gave_up=any(each.gave_up for each in endings),
        failure=failure,
        broken_file=broken_file,
    )


def replay(
    streams: Sequence[StreamReplay],
    client: Client,
    clock: Clock,
    *,
    start_ns: int,
    tick_ns: int,
    give_up_ns: int,
    stop: Callable[[], bool],
    progress: Callable[[int], object],
) -> Ending:
    """Replay the streams from `start_ns` (epoch) on.

    Ticks are `tick_ns` apart where records are due more often than that; a backlog is worked off
    without pause. Ends when all is handed over, when a record failed, when `stop()` is true, or
    `give_up_ns` after the start.
    """
    next_progress_ns = 0
    with _undisturbed():
        while True:
            if stop():
                return Ending(interrupted=True)
            if client.failure:
                return Ending(failure=client.failure)
            tick_start_ns = clock.now_ns() - start_ns
            if tick_start_ns > give_up_ns:
                return Ending(gave_up=True)
            pause_ns = _tick(streams, client, clock, start_ns)
            client.serve()
            if all(stream.done for stream in streams):
                progress(sum(stream.next_id for stream in streams))
                return Ending()
            if tick_start_ns >= next_progress_ns:
                next_progress_ns = tick_start_ns + _PROGRESS_NS
                progress(sum(stream.next_id for stream in streams))
            if pause_ns is None:
                next_due_ns = min(stream.next_due_ns for stream in streams if not stream.done)
                now_ns = clock.now_ns() - start_ns
                pause_ns = next_tick_ns(now_ns, next_due_ns, tick_ns) - now_ns
            if pause_ns > 0:
                clock.sleep_ns(min(pause_ns, _LONGEST_SLEEP_NS))


def next_tick_ns(now_ns: int, next_due_ns: int, tick_ns: int) -> int:
    """When to look again: at the next record's due time, but on a grid where many are due.

    The grid (multiples of `tick_ns` after the start) makes batches even, and keeps the delay of
    one wake-up from moving the next one.
    """
    if next_due_ns - now_ns >= tick_ns:
        return next_due_ns
    return -(-max(next_due_ns, now_ns + 1) // tick_ns) * tick_ns


def _tick(
    streams: Sequence[StreamReplay], client: Client, clock: Clock, start_ns: int
) -> int | None:
    """Hand over what is due. Returns a pause that is wanted before the next tick, or None."""
    stalled = backlog = False
    for stream in streams:
        if stream.done:
            continue
        if not stream.prepared:
            stop_id = stream.due_by(clock.now_ns() - start_ns)
            if stop_id == stream.next_id:
                continue
            stream.prepare(stop_id)
        if not stream.hand(client):
            stalled = True
            continue
        now_ns = clock.now_ns() - start_ns
        stream.handed(now_ns)
        backlog |= not stream.done and stream.full_bite
    if stalled:
        return _STALL_NS
    return 0 if backlog else None


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No collection pauses and quick thread switches: both would show as lateness."""
    interval = sys.getswitchinterval()
    collecting = gc.isenabled()
    gc.disable()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        if collecting:
            gc.enable()
