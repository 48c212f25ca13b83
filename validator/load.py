"""Validity of the load: whether the sender did what was asked of it."""

from dataclasses import dataclass, field
from typing import Any

from validator.latency import statistics
from validator.records import Ints
from validator.streams import SentReport, Stream

RATE_TOLERANCE = 0.01
LATENESS_SHARE = 0.1
RESOLUTION_MS = 1


@dataclass(slots=True)
class StreamLoad:
    """The load of one stream; `valid` is None where nobody says what was asked."""

    stream: int
    asked_rate: float | None
    achieved_rate: float | None
    lateness_ms: dict[str, Any] | None
    failed: int | None = None
    stalls: int | None = None
    valid: bool | None = None
    ended_early: bool = False
    reasons: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """As the verdict shows it."""
        return {
            "stream": self.stream,
            "asked_rate": self.asked_rate,
            "achieved_rate": self.achieved_rate,
            "lateness_ms": self.lateness_ms,
            "failed": self.failed,
            "queue_full_stalls": self.stalls,
            "ended_early": self.ended_early,
            "valid": self.valid,
            "reasons": self.reasons,
        }


def judge_stream(
    stream: Stream,
    asked_rate: float | None,
    duration_s: float | None,
    slo_limit_ms: float,
    report: SentReport | None,
) -> StreamLoad:
    """Judge one stream by what the broker stamped and what the sender reported."""
    stamped = stream.topic.stamped and len(stream) > 0
    load = StreamLoad(
        stream=stream.number,
        asked_rate=asked_rate,
        achieved_rate=None,
        lateness_ms=statistics(_lateness(stream)) if stamped else None,
        failed=report.failed if report else None,
        stalls=report.stalls if report else None,
    )
    rate_is_right = None
    if stamped:
        load.achieved_rate, rate_is_right = _rate(stream, asked_rate)
    if asked_rate is not None and duration_s is not None:
        load.ended_early = _ended_early(stream, asked_rate, duration_s)
    if load.failed:
        load.reasons.append(f"stream {stream.number}: {load.failed:,} sends failed")
    if load.stalls:
        load.reasons.append(
            f"stream {stream.number}: the producer's queue was full {load.stalls:,} times"
        )
    if asked_rate is not None and rate_is_right is False:
        achieved = "unknown" if load.achieved_rate is None else f"{load.achieved_rate:,.1f}"
        load.reasons.append(
            f"stream {stream.number}: {achieved} records/s achieved, {asked_rate:,.1f} asked"
        )
    limit = LATENESS_SHARE * slo_limit_ms
    if asked_rate is not None and load.lateness_ms:
        name = next(
            (
                name
                for name in ("p99", "p95", "p90", "p50", "min")
                if load.lateness_ms[name] is not None
            ),
            None,
        )
        if name and load.lateness_ms[name] > limit:
            load.reasons.append(
                f"stream {stream.number}: lateness {name} is {load.lateness_ms[name]:,.0f} ms, "
                f"{limit:,.0f} allowed"
            )
    if load.reasons:
        load.valid = False
    elif asked_rate is not None and rate_is_right is not None:
        load.valid = True
    return load


def _lateness(stream: Stream) -> Ints:
    """How late each record came that says when it was due, in milliseconds."""
    late_ms = stream.topic.timestamp_ms
    late_ms -= stream["due_ms"]
    has_due = stream["has_due"]
    return late_ms if has_due.all() else late_ms[has_due]


def _rate(stream: Stream, asked: float | None) -> tuple[float | None, bool | None]:
    """The achieved rate, and whether it is the asked one.

    Over the time from the first to the last record, in which n records make n-1 intervals; a stream
    that ends early has its rate as long as it runs. A millisecond is the finest that stamps tell.
    """
    stamps = stream.topic.timestamp_ms
    intervals = len(stamps) - 1
    span_ms = int(stamps.max() - stamps.min())
    if not intervals or not span_ms:
        return None, None
    achieved = intervals / span_ms * 1_000
    if asked is None:
        return achieved, None
    slowest = intervals / (span_ms + RESOLUTION_MS) * 1_000
    fastest = intervals / max(span_ms - RESOLUTION_MS, RESOLUTION_MS) * 1_000
    low, high = asked * (1 - RATE_TOLERANCE), asked * (1 + RATE_TOLERANCE)
    return achieved, slowest <= high and fastest >= low


def _ended_early(stream: Stream, asked: float, duration_s: float) -> bool:
    return len(stream) < (1 - RATE_TOLERANCE) * int(asked * duration_s)


def load_document(loads: list[StreamLoad]) -> dict[str, Any]:
    """All streams together: the stream that is furthest off stands for them, validity needs all."""
    validities = [load.valid for load in loads]
    if False in validities:
        valid: bool | None = False
    else:
        valid = None if None in validities or not loads else True
    furthest = max(loads, key=_distance, default=None)
    latest = max(loads, key=_latest, default=None)
    return {
        "asked_rate": furthest.asked_rate if furthest else None,
        "achieved_rate": furthest.achieved_rate if furthest else None,
        "lateness_ms": latest.lateness_ms if latest else None,
        "valid": valid,
        "reasons": [reason for load in loads for reason in load.reasons],
        "streams": [load.document() for load in loads],
    }


def _distance(load: StreamLoad) -> float:
    if load.achieved_rate is None:
        return float("inf")
    return abs(load.achieved_rate - load.asked_rate) if load.asked_rate else -load.achieved_rate


def _latest(load: StreamLoad) -> float:
    found = load.lateness_ms["max"] if load.lateness_ms else None
    return float("-inf") if found is None else float(found)
