"""One send from files to report: the sender's effects, in order.

Everything that can be wrong with files, topics and settings is found before the first record is
sent, and raised. From then on nothing is raised: what happens is in the report.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError, Interrupted, ServiceError, UsageError
from espbench.kafka.admin import KafkaAdmin, OffsetRange
from sender.clients import Client, make_client
from sender.clock import Clock, SystemClock
from sender.files import StreamFile, open_stream_file
from sender.lateness import LatenessHistogram
from sender.profiles import Profile
from sender.readback import read_back
from sender.replay import Ending, replay
from sender.report import Evidence, StreamEvidence, make_report
from sender.schedule import Schedule
from sender.settings import ProducerSettings
from sender.stopping import noted_signals
from sender.stream import StreamReplay

_ADMIN_TIMEOUT_S = 8.0
_INTERRUPTED_FLUSH_S = 5.0
# A sender that cannot keep up works its backlog off, but not for ever.
_OVERTIME_S = 30.0
_NS_PER_MS = 1_000_000

ProgressFactory = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """One stream to be replayed: 1 and 2 are sensors, 3 production times."""

    stream: int
    path: Path
    topic: str
    profile: Profile


@dataclass(frozen=True, slots=True)
class SendRequest:
    """What is asked of the sender.

    `start_ms` is the announced common start (epoch); without it the start is `lead_s` after all
    is ready. `lateness_limit_ms` is what the 99th percentile may be for the load to be valid.
    """

    run: str
    bootstrap_servers: str
    streams: Sequence[StreamRequest]
    duration_s: float
    lateness_limit_ms: float
    producer: ProducerSettings
    start_ms: int | None = None
    lead_s: float = 2.0
    in_memory: bool = True
    read_back: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    """The report, and the error to end with once it is written (None: the send ran to its end)."""

    report: dict[str, Any]
    error: EspbenchError | Interrupted | None


def send(
    request: SendRequest,
    *,
    progress: ProgressFactory,
    announce: Callable[[int], None],
    clock: Clock | None = None,
) -> Sent:
    """Replay the streams. `announce` is told the start (epoch ms) as soon as it is fixed.

    Raises `InputError`, `UsageError`, `ServiceError` before anything is sent, and nothing after.
    """
    clock = clock or SystemClock()
    files = [
        open_stream_file(each.path, each.stream, in_memory=request.in_memory)
        for each in request.streams
    ]
    schedules = [Schedule(each.profile, request.duration_s) for each in request.streams]
    _refuse_nothing_to_send(request, schedules)
    admin = KafkaAdmin(request.bootstrap_servers, timeout_s=_ADMIN_TIMEOUT_S)
    before = [_empty_topic(admin, each.topic) for each in request.streams]
    with noted_signals() as stop:
        client = make_client(request.bootstrap_servers, request.producer)
        client.connect([each.topic for each in request.streams], _ADMIN_TIMEOUT_S)
        start_ms = _start_ms(request, clock)
        announce(start_ms)
        streams = _replays(request, files, schedules, before, start_ms)
        cpu_before, wall_before = time.process_time(), time.monotonic()
        with progress("sending", sum(each.total for each in streams)) as show:
            ending = replay(
                streams,
                client,
                clock,
                start_ns=start_ms * _NS_PER_MS,
                tick_ns=round(request.producer.tick_ms * _NS_PER_MS),
                give_up_ns=round((request.duration_s + _OVERTIME_S) * 1e9),
                stop=stop,
                progress=show,
            )
        ending = _finish(client, request, ending, stop)
        cpu_s, wall_s = time.process_time() - cpu_before, time.monotonic() - wall_before
        evidence = Evidence(
            run=request.run,
            start_ms=start_ms,
            client=request.producer.client,
            settings=_settings(request),
            streams=_look_back(request, streams, client, before, ending),
            ending=ending,
            cpu_s=cpu_s,
            wall_s=wall_s,
            limit_ms=request.lateness_limit_ms,
            notes=_notes(request, ending),
        )
    return Sent(make_report(evidence), _error(request, ending))


def _refuse_nothing_to_send(request: SendRequest, schedules: Sequence[Schedule]) -> None:
    for each, schedule in zip(request.streams, schedules, strict=True):
        if not schedule.total:
            raise UsageError(
                f"stream {each.stream}: not one record is due within {request.duration_s:g} s",
                "raise --rate or --duration",
            )


def _empty_topic(admin: KafkaAdmin, topic: str) -> list[OffsetRange]:
    ranges = admin.offsets(topic)
    # Ids begin at 0 in every topic; a second send into it would make every id ambiguous.
    if any(each.end for each in ranges):
        raise UsageError(
            f"the topic {topic} was sent to before",
            "make new topics with `espbench topics create` and another --run",
        )
    return ranges


def _start_ms(request: SendRequest, clock: Clock) -> int:
    now_ms = clock.now_ns() // _NS_PER_MS
    if request.start_ms is None:
        return now_ms + round(request.lead_s * 1000)
    if request.start_ms < now_ms:
        raise UsageError(
            f"the announced start is {(now_ms - request.start_ms) / 1000:.1f} s ago",
            "announce a later --start-ms: files are checked and Kafka is reached before it",
        )
    return request.start_ms


def _replays(
    request: SendRequest,
    files: Sequence[StreamFile],
    schedules: Sequence[Schedule],
    before: Sequence[Sequence[OffsetRange]],
    start_ms: int,
) -> list[StreamReplay]:
    return [
        StreamReplay(
            file=file,
            topic=each.topic,
            partitions=len(ranges),
            schedule=schedule,
            start_ms=start_ms,
        )
        for each, file, schedule, ranges in zip(
            request.streams, files, schedules, before, strict=True
        )
    ]


def _finish(
    client: Client, request: SendRequest, ending: Ending, stop: Callable[[], bool]
) -> Ending:
    """Wait for the last acknowledgements; a stop or a failure meanwhile changes the ending."""
    if ending.interrupted:
        client.finish(_INTERRUPTED_FLUSH_S, lambda: False)
        return ending
    client.finish(request.producer.delivery_timeout_s + _INTERRUPTED_FLUSH_S, stop)
    if client.failure and not ending.failure:
        interrupted = ending.interrupted or stop()
        return Ending(interrupted=interrupted, gave_up=ending.gave_up, failure=client.failure)
    return ending


def _look_back(
    request: SendRequest,
    streams: Sequence[StreamReplay],
    client: Client,
    before: Sequence[list[OffsetRange]],
    ending: Ending,
) -> list[StreamEvidence]:
    evidence = []
    admin: KafkaAdmin | None = None
    try:
        admin = KafkaAdmin(request.bootstrap_servers, timeout_s=_ADMIN_TIMEOUT_S)
    except ServiceError:
        admin = None
    for stream, ranges in zip(streams, before, strict=True):
        after: list[OffsetRange] | None = None
        appended: LatenessHistogram | None = None
        try:
            after = admin.offsets(stream.topic) if admin else None
        except EspbenchError:  # the broker or the topic is gone: the report says null
            after = None
        if after and request.read_back and not ending.failure:
            appended = read_back(request.bootstrap_servers, stream.topic, after)
        evidence.append(StreamEvidence(stream, client.tally(stream.topic), ranges, after, appended))
    return evidence


def _settings(request: SendRequest) -> dict[str, Any]:
    return {
        **request.producer.public(),
        "duration_s": request.duration_s,
        "lateness_limit_ms": request.lateness_limit_ms,
        "in_memory": request.in_memory,
        "read_back": request.read_back,
    }


def _notes(request: SendRequest, ending: Ending) -> list[str]:
    if ending.gave_up:
        return [f"gave up {_OVERTIME_S:.0f} s after the end of {request.duration_s:g} s"]
    return []


def _error(request: SendRequest, ending: Ending) -> EspbenchError | Interrupted | None:
    if ending.interrupted:
        return Interrupted("sending was interrupted")
    if ending.failure:
        return ServiceError(
            f"Kafka at {request.bootstrap_servers} did not take a record: {ending.failure}",
            "look into the broker's log (`espbench status` names it); then send anew",
        )
    return None
