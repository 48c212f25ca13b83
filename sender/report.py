"""The sender's report: what was asked, what was done, and whether the load counts."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from espbench.errors import MachineError
from espbench.kafka.admin import OffsetRange
from espbench.paths import write_atomically
from sender.clients import Tally
from sender.lateness import LatenessHistogram
from sender.readback import Account
from sender.replay import Ending
from sender.stream import StreamReplay
from sender.verdict import Effort, StreamOutcome, brake, reasons_against

FORMAT = "espbench-sender/1"


@dataclass(frozen=True, slots=True)
class StreamEvidence:
    """What is known of one stream after sending.

    `before` and `after` are the topic's offsets around the run, `after` None where the broker did
    not answer any more; `appended` is None where the stamps were not read back.
    """

    replay: StreamReplay
    tally: Tally
    before: Sequence[OffsetRange]
    after: Sequence[OffsetRange] | None
    appended: LatenessHistogram | None
    account: Account | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a whole send."""

    run: str
    start_ms: int
    client: str
    settings: dict[str, Any]
    streams: Sequence[StreamEvidence]
    ending: Ending
    cpu_s: float
    effort: Effort
    limit_ms: float
    notes: Sequence[str] = field(default=())
    senders: int = 1


def make_report(evidence: Evidence) -> dict[str, Any]:
    """The report in its format "espbench-sender/1"."""
    outcomes = [_outcome(each) for each in evidence.streams]
    limit_ms = evidence.limit_ms
    brakes = [brake(each, evidence.effort, limit_ms=limit_ms) for each in outcomes]
    reasons = [
        reason for each in outcomes for reason in reasons_against(each, limit_ms=limit_ms)
    ] + list(evidence.notes)
    # An interrupted load was held back by nobody.
    if reasons and not evidence.ending.interrupted:
        reasons += [
            f"stream {outcome.stream}: the brake was the {held_back_by}"
            for outcome, held_back_by in zip(outcomes, brakes, strict=True)
            if held_back_by
        ]
    if evidence.ending.interrupted:
        reasons.insert(0, "interrupted")
    if evidence.ending.failure:
        reasons.insert(0, f"the first failure: {evidence.ending.failure}")
    if evidence.ending.broken_file:
        reasons.insert(0, evidence.ending.broken_file)
    last_handed_ns = max((each.replay.last_handed_ns for each in evidence.streams), default=0)
    return {
        "format": FORMAT,
        "run": evidence.run,
        "start_ms": evidence.start_ms,
        "end_ms": evidence.start_ms + last_handed_ns // 1_000_000,
        "client": evidence.client,
        "settings": evidence.settings,
        "streams": [
            _stream(each, outcome, held_back_by)
            for each, outcome, held_back_by in zip(evidence.streams, outcomes, brakes, strict=True)
        ],
        "senders": evidence.senders,
        "cpu_s": round(evidence.cpu_s, 3),
        "cpu_share": {key: _rounded(value) for key, value in asdict(evidence.effort).items()},
        "interrupted": evidence.ending.interrupted
        or evidence.ending.failure is not None
        or evidence.ending.broken_file is not None,
        "valid": not reasons,
        "reasons": reasons,
    }


def write_report(path: Path, report: dict[str, Any]) -> None:
    """Write the report at once or not at all."""
    try:
        write_atomically(path, json.dumps(report, indent=2, allow_nan=False) + "\n")
    except OSError as error:
        raise MachineError(
            f"cannot write the sender's report {path}: {error.strerror}",
            "check permissions and disk, or choose another --out",
        ) from error


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 3)


def _outcome(evidence: StreamEvidence) -> StreamOutcome:
    replay, tally = evidence.replay, evidence.tally
    handed, failed = sum(tally.handed.values()), sum(tally.failed.values())
    acknowledged = handed - failed
    span_s = max(replay.schedule.span_s(handed), replay.last_handed_ns / 1e9)
    appended = evidence.appended
    return StreamOutcome(
        stream=replay.file.stream,
        scheduled=replay.total,
        handed=handed,
        acknowledged=acknowledged,
        failed=failed,
        queue_full_stalls=replay.stalls,
        asked_rate=replay.total / replay.schedule.span_s(replay.total) if replay.total else 0.0,
        achieved_rate=acknowledged / span_s if span_s else 0.0,
        handed_p99_ms=replay.lateness.percentile_ms(99),
        appended_p99_ms=appended.percentile_ms(99) if appended else None,
        appended_count=None
        if evidence.after is None
        else sum(each.end for each in evidence.after) - sum(each.end for each in evidence.before),
        duplicated=evidence.account.duplicated if evidence.account else None,
    )


def _stream(
    evidence: StreamEvidence, outcome: StreamOutcome, held_back_by: str | None
) -> dict[str, Any]:
    replay, appended = evidence.replay, evidence.appended
    return {
        "stream": outcome.stream,
        "topic": replay.topic,
        "file": str(replay.file.path),
        "profile": replay.schedule.profile.name,
        "asked_rate": round(outcome.asked_rate, 6),
        "duration_s": replay.schedule.duration_s,
        "scheduled": replay.total,
        "handed": outcome.handed,
        "acknowledged": outcome.acknowledged,
        "failed": outcome.failed,
        "retried": evidence.tally.retried,
        "appended": outcome.appended_count,
        "account": asdict(evidence.account) if evidence.account else None,
        "queue_full_stalls": outcome.queue_full_stalls,
        "ended_early": replay.ended_early,
        "achieved_rate": round(outcome.achieved_rate, 3),
        "asked_per_second": replay.schedule.asked_per_second(replay.total),
        "per_second": replay.per_second(),
        "lateness_ms": {
            "handed": replay.lateness.summary_ms(),
            "appended": appended.summary_ms() if appended else None,
        },
        "brake": held_back_by,
        "partitions": _partitions(evidence),
    }


def _partitions(evidence: StreamEvidence) -> list[dict[str, Any]]:
    """Acknowledged records by partition, and the offsets that this send filled."""
    ends = {each.partition: each.end for each in evidence.after or ()}
    rows = []
    for each in evidence.before:
        partition = each.partition
        handed = evidence.tally.handed.get(partition, 0)
        end = ends.get(partition)
        filled = end is not None and end > each.end
        rows.append(
            {
                "partition": partition,
                "count": handed - evidence.tally.failed.get(partition, 0),
                "first_offset": each.end if filled else None,
                "last_offset": end - 1 if filled and end is not None else None,
            }
        )
    return rows
