"""What is to be judged: the files, and what the files cannot tell."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from espbench.names import Query
from validator.streams import SentReport
from validator.topics import TopicFile

AT_LEAST_ONCE, EXACTLY_ONCE = "at-least-once", "exactly-once"
GUARANTEES = (AT_LEAST_ONCE, EXACTLY_ONCE)
DEFAULT_WARMUP_S = 10.0
# Thirty years in seconds: beyond it no number of a request makes sense.
LARGEST = 1e9
DEFAULT_FRESHNESS_S = 10.0


@dataclass(frozen=True, slots=True)
class Slo:
    """The service level objective: a percentile of the latency after warm-up, and its limit."""

    percentile: float = 90.0
    limit_ms: float = 2_000.0


@dataclass(frozen=True, slots=True)
class Request:
    """One query's files and declarations; `sources` by stream, `tables` by name.

    `problems` are pieces of evidence that are missing before any file is opened. `rate` and
    `duration_s` are None where nobody says what the sender was asked for.
    """

    query: Query
    sources: dict[int, TopicFile]
    sink: TopicFile | None
    tables: dict[str, Path] = field(default_factory=dict)
    guarantee: str = AT_LEAST_ONCE
    rate: float | None = None
    duration_s: float | None = None
    warmup_s: float = DEFAULT_WARMUP_S
    slo: Slo = Slo()
    freshness_s: float = DEFAULT_FRESHNESS_S
    sender_report: dict[str, Any] | None = None
    clock_offsets_ms: tuple[float, ...] = ()
    run: str | None = None
    problems: tuple[str, ...] = ()

    def sent(self, stream: int) -> SentReport | None:
        """What the sender's report says of a stream; None without a report of it."""
        streams = (self.sender_report or {}).get("streams")
        for entry in streams if isinstance(streams, list) else []:
            if isinstance(entry, dict) and entry.get("stream") == stream:
                return SentReport(
                    acknowledged=_count(entry, "acknowledged"),
                    failed=_count(entry, "failed"),
                    stalls=_count(entry, "queue_full_stalls"),
                    asked_rate=_rate(entry.get("asked_rate")),
                )
        return None


def _count(entry: dict[str, Any], name: str) -> int | None:
    value = entry.get(name)
    return value if type(value) is int and 0 <= value < 2**63 else None


def _rate(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 < value <= LARGEST else None
