"""One process's share of a send: connect, replay, finish, and tell what came of it."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from espbench.errors import InputError
from sender.clients import Tally, make_client
from sender.clock import Clock
from sender.lateness import LatenessHistogram
from sender.replay import Ending, replay
from sender.settings import ProducerSettings
from sender.stream import StreamReplay

CONNECT_TIMEOUT_S = 8.0
INTERRUPTED_FLUSH_S = 5.0
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class StreamShare:
    """What one process did for one stream."""

    tally: Tally
    lateness: LatenessHistogram
    seconds: Counter[int]
    stalls: int
    last_handed_ns: int
    next_id: int


@dataclass(frozen=True, slots=True)
class Share:
    """What one process did. CPU in seconds: of the whole process, and of the loop's thread."""

    streams: Sequence[StreamShare]
    ending: Ending
    cpu_s: float
    loop_cpu_s: float
    wall_s: float


def carry_out(
    producer: ProducerSettings,
    bootstrap_servers: str,
    topics: Sequence[str],
    begin: Callable[[], tuple[int, Sequence[StreamReplay]]],
    *,
    clock: Clock,
    give_up_ns: int,
    stop: Callable[[], bool],
    progress: Callable[[int], object],
) -> Share:
    """Connect, `begin` (which fixes the start, epoch ms, and makes the streams) and replay.

    Raises `ServiceError` where Kafka cannot be reached, and nothing once sending has begun.
    """
    client = make_client(bootstrap_servers, producer)
    client.connect(topics, CONNECT_TIMEOUT_S)
    start_ms, streams = begin()
    cpu, loop_cpu, wall = time.process_time(), time.thread_time(), time.monotonic()
    try:
        ending = replay(
            streams,
            client,
            clock,
            start_ns=start_ms * _NS_PER_MS,
            tick_ns=round(producer.tick_ms * _NS_PER_MS),
            give_up_ns=give_up_ns,
            stop=stop,
            progress=progress,
        )
    except InputError as error:  # the file was changed meanwhile
        ending = Ending(broken_file=error.cause)
    loop_cpu_s = time.thread_time() - loop_cpu
    if ending.interrupted or ending.broken_file:
        client.finish(INTERRUPTED_FLUSH_S, lambda: False)
    else:
        client.finish(producer.delivery_timeout_s + INTERRUPTED_FLUSH_S, stop)
        if client.failure and not ending.failure:
            ending = Ending(interrupted=stop(), gave_up=ending.gave_up, failure=client.failure)
    return Share(
        [_of(stream, client.tally(stream.topic)) for stream in streams],
        ending,
        time.process_time() - cpu,
        loop_cpu_s,
        time.monotonic() - wall,
    )


def _of(stream: StreamReplay, tally: Tally) -> StreamShare:
    return StreamShare(
        tally,
        stream.lateness,
        stream.seconds,
        stream.stalls,
        stream.last_handed_ns,
        stream.next_id,
    )
