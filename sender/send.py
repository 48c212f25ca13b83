"""One send from files to report: the sender's effects, in order.

Everything that can be wrong with files, topics and settings is found before the first record is
sent, and raised. From then on nothing is raised: what happens is in the report.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError, InputError, Interrupted, ServiceError, UsageError
from espbench.kafka.admin import KafkaAdmin, OffsetRange
from sender.clients import Tally
from sender.clients import merged as merged_tallies
from sender.clock import Clock, SystemClock
from sender.drawn import write_schedule
from sender.effort import MachineLoad
from sender.files import StreamFile, open_stream_file
from sender.lateness import LatenessHistogram
from sender.processes import send_by_many
from sender.profiles import Profile
from sender.readback import Account, account, read_back
from sender.replay import Ending, merged
from sender.report import Evidence, StreamEvidence, make_report
from sender.schedule import Schedule
from sender.settings import ProducerSettings
from sender.share import Share, carry_out
from sender.stopping import noted_signals
from sender.stream import StreamReplay

_ADMIN_TIMEOUT_S = 8.0
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
    profile_text: str = "constant"


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
    in_memory: bool | None = None
    read_back: bool = True
    schedule_out: Path | None = None
    senders: int = 1

    @property
    def give_up_ns(self) -> int:
        """How long after the start even a backlog is given up."""
        return round((self.duration_s + _OVERTIME_S) * 1e9)


@dataclass(frozen=True, slots=True)
class Sent:
    """The report, and the error to end with once it is written (None: the send ran to its end)."""

    report: dict[str, Any]
    error: EspbenchError | Interrupted | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Files, schedules and topics, found to be fit for sending."""

    request: SendRequest
    files: Sequence[StreamFile]
    schedules: Sequence[Schedule]
    before: Sequence[Sequence[OffsetRange]]

    def replays(self, start_ms: int, part: tuple[int, int] = (0, 1)) -> list[StreamReplay]:
        """The streams from a start on; `part` (k, P) of their partitions."""
        return [
            StreamReplay(
                file=file,
                topic=each.topic,
                partitions=len(ranges),
                schedule=schedule,
                start_ms=start_ms,
                part=part,
            )
            for each, file, schedule, ranges in zip(
                self.request.streams, self.files, self.schedules, self.before, strict=True
            )
        ]


def prepare(request: SendRequest) -> Prepared:
    """Check everything that can be wrong before anything is sent."""
    files = [
        open_stream_file(each.path, each.stream, in_memory=request.in_memory)
        for each in request.streams
    ]
    schedules = [Schedule(each.profile, request.duration_s) for each in request.streams]
    _refuse_nothing_to_send(request, schedules)
    admin = KafkaAdmin(request.bootstrap_servers, timeout_s=_ADMIN_TIMEOUT_S)
    before = [_empty_topic(admin, each.topic) for each in request.streams]
    for each, ranges in zip(request.streams, before, strict=True):
        if len(ranges) < request.senders:
            raise UsageError(
                f"{request.senders} senders, but {each.topic} has {len(ranges)} partitions",
                "make topics with more --partitions, or use fewer --senders",
            )
    return Prepared(request, files, schedules, before)


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
    prepared = prepare(request)
    if request.schedule_out:
        streams = [each.stream for each in request.streams]
        write_schedule(request.schedule_out, dict(zip(streams, prepared.schedules, strict=True)))
    streams_whole: list[StreamReplay] = []
    started: list[int] = []

    def begin() -> int:
        start_ms = _start_ms(request, clock)
        announce(start_ms)
        started.append(start_ms)
        streams_whole.extend(prepared.replays(start_ms))
        return start_ms

    with noted_signals() as stop, ExitStack() as shown:
        total = sum(each.total for each in prepared.replays(0))
        show = shown.enter_context(progress("sending", total))
        load = MachineLoad()
        if request.senders > 1:
            shares = send_by_many(request, request.senders, begin, stop=stop, progress=show)
            _absorb(streams_whole, shares)
        else:
            share = carry_out(
                request.producer,
                request.bootstrap_servers,
                [each.topic for each in request.streams],
                lambda: (begin(), streams_whole),
                clock=clock,
                give_up_ns=request.give_up_ns,
                stop=stop,
                progress=show,
            )
            shares = [share]
        effort = load.effort(shares)
        shown.close()
        ending = merged([each.ending for each in shares])
        tallies = [
            merged_tallies([each.streams[index].tally for each in shares if each.streams])
            for index in range(len(streams_whole))
        ]
        evidence = Evidence(
            run=request.run,
            start_ms=started[0],
            client=request.producer.client,
            settings=_settings(request),
            streams=_look_back(request, streams_whole, tallies, prepared.before),
            ending=ending,
            cpu_s=sum(each.cpu_s for each in shares),
            effort=effort,
            limit_ms=request.lateness_limit_ms,
            notes=_notes(request, ending),
            senders=request.senders,
        )
    return Sent(make_report(evidence), _error(request, ending))


def _absorb(streams: Sequence[StreamReplay], shares: Sequence[Share]) -> None:
    """Put what the processes did into the streams of the report."""
    for index, stream in enumerate(streams):
        parts = [share.streams[index] for share in shares if share.streams]
        for part in parts:
            stream.lateness.merge(part.lateness)
            stream.seconds.update(part.seconds)
            stream.stalls += part.stalls
            stream.last_handed_ns = max(stream.last_handed_ns, part.last_handed_ns)
        stream.next_id = min((part.next_id for part in parts), default=0)


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


def _look_back(
    request: SendRequest,
    streams: Sequence[StreamReplay],
    tallies: Sequence[Tally],
    before: Sequence[Sequence[OffsetRange]],
) -> list[StreamEvidence]:
    try:
        admin: KafkaAdmin | None = KafkaAdmin(request.bootstrap_servers, timeout_s=_ADMIN_TIMEOUT_S)
    except ServiceError:
        admin = None
    evidence = []
    for stream, tally, ranges in zip(streams, tallies, before, strict=True):
        after: list[OffsetRange] | None = None
        appended: LatenessHistogram | None = None
        found: Account | None = None
        try:
            after = admin.offsets(stream.topic) if admin else None
        except EspbenchError:  # the broker or the topic is gone: the report says null
            after = None
        if after and request.read_back:
            appended = read_back(request.bootstrap_servers, stream.topic, after)
            if _went_wrong(tally, after):
                ids = stream.handed_ids(tally.handed)
                found = account(request.bootstrap_servers, stream.topic, after, ids)
        evidence.append(StreamEvidence(stream, tally, ranges, after, appended, found))
    return evidence


def _went_wrong(tally: Tally, after: Sequence[OffsetRange]) -> bool:
    """Whether the topic may hold anything but each record once: then it is read and counted."""
    handed, appended = sum(tally.handed.values()), sum(each.count for each in after)
    return bool(sum(tally.failed.values()) or tally.retried or appended != handed)


def _settings(request: SendRequest) -> dict[str, Any]:
    return {
        **request.producer.public(),
        "duration_s": request.duration_s,
        "lateness_limit_ms": request.lateness_limit_ms,
        "profiles": {str(each.stream): each.profile_text for each in request.streams},
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
    if ending.broken_file:
        return InputError(ending.broken_file, "what was sent before is in the report; send anew")
    if ending.failure:
        return ServiceError(
            f"Kafka at {request.bootstrap_servers} did not take a record: {ending.failure}",
            "look into the broker's log (`espbench status` names it); then send anew",
        )
    return None
