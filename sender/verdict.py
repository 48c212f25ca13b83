"""Was the load as asked? Validity of a stream, and what held it back."""

from dataclasses import dataclass

RATE_TOLERANCE = 0.01
LATENESS_SHARE_OF_SLO = 0.10
_BUSY_CORE = 0.85
# A host that takes so much of the machine's time away makes everybody late.
_STOLEN = 0.05


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """What is judged of one stream. Rates in records/s, lateness as the 99th percentile."""

    stream: int
    scheduled: int
    handed: int
    acknowledged: int
    failed: int
    queue_full_stalls: int
    asked_rate: float
    achieved_rate: float
    handed_p99_ms: float | None
    appended_p99_ms: float | None
    appended_count: int | None
    duplicated: int | None = None


@dataclass(frozen=True, slots=True)
class Effort:
    """How busy everybody was, as shares of a core's time (of all cores' for the machine's).

    `loop` is the busiest sender's own thread, `client` the threads of its Kafka client, `busy` the
    whole machine, `stolen` what the machine's host kept for others; None where nobody tells.
    """

    loop: float = 0.0
    client: float = 0.0
    busy: float | None = None
    stolen: float | None = None


def reasons_against(outcome: StreamOutcome, *, limit_ms: float) -> list[str]:
    """Why this stream's load is not valid; empty where it is."""
    reasons = []
    if outcome.handed < outcome.scheduled:
        missing = outcome.scheduled - outcome.handed
        reasons.append(f"{missing:,} of {outcome.scheduled:,} records were never handed over")
    if outcome.failed:
        reasons.append(f"{outcome.failed:,} records failed")
    if outcome.appended_count is not None and outcome.appended_count < outcome.acknowledged:
        lost = outcome.acknowledged - outcome.appended_count
        reasons.append(f"{lost:,} acknowledged records are not in the topic")
    more = outcome.appended_count is not None and outcome.appended_count > outcome.handed
    if more and outcome.appended_count is not None and not outcome.duplicated:
        extra = outcome.appended_count - outcome.handed
        reasons.append(f"{extra:,} more records are in the topic than were handed over")
    if outcome.duplicated:
        reasons.append(f"{outcome.duplicated:,} copies too many are in the topic")
    if outcome.queue_full_stalls:
        reasons.append(f"the producer's queue was full {outcome.queue_full_stalls:,} times")
    if abs(outcome.achieved_rate - outcome.asked_rate) > RATE_TOLERANCE * outcome.asked_rate:
        reasons.append(
            f"{outcome.achieved_rate:,.1f} records/s achieved, {outcome.asked_rate:,.1f} asked"
        )
    late_ms = outcome.handed_p99_ms if outcome.appended_p99_ms is None else outcome.appended_p99_ms
    if late_ms is not None and late_ms > limit_ms:
        reasons.append(f"99 % lateness {late_ms:,.1f} ms, limit {limit_ms:,.1f} ms")
    return [f"stream {outcome.stream}: {reason}" for reason in reasons]


def brake(outcome: StreamOutcome, effort: Effort, *, limit_ms: float) -> str | None:
    """What held the load back: `sender`, `broker` or `machine`; None where it kept up.

    A full queue: the broker did not take more, unless the sender's client was busy all the time.
    Records handed over late by a sender that used its core to the full: the sender. Late with CPU
    to spare: others kept the machine busy. Handed over in time and stamped late: the broker, unless
    the machine's host took its time away. Failed, lost or doubled records: the broker.
    """
    handed_late = outcome.handed_p99_ms is not None and outcome.handed_p99_ms > limit_ms
    slow = outcome.achieved_rate < (1 - RATE_TOLERANCE) * outcome.asked_rate
    if outcome.failed:
        return "broker"
    if outcome.queue_full_stalls:
        return "sender" if effort.client >= _BUSY_CORE else "broker"
    if handed_late or slow:
        return "sender" if effort.loop >= _BUSY_CORE else "machine"
    if outcome.appended_p99_ms is not None and outcome.appended_p99_ms > limit_ms:
        return "machine" if (effort.stolen or 0.0) >= _STOLEN else "broker"
    return "broker" if reasons_against(outcome, limit_ms=limit_ms) else None
