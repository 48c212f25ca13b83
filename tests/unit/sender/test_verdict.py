"""When a load counts, and what held it back."""

from dataclasses import replace

import pytest

from sender.verdict import Effort, StreamOutcome, brake, reasons_against

GOOD = StreamOutcome(
    stream=1,
    scheduled=1_000,
    handed=1_000,
    acknowledged=1_000,
    failed=0,
    queue_full_stalls=0,
    asked_rate=100.0,
    achieved_rate=99.5,
    handed_p99_ms=1.0,
    appended_p99_ms=2.0,
    appended_count=1_000,
)


def test_a_good_load_has_nothing_against_it() -> None:
    assert reasons_against(GOOD, limit_ms=200) == []
    assert brake(GOOD, Effort(loop=0.1), limit_ms=200) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"handed": 990, "acknowledged": 990, "appended_count": 990}, "10 of 1,000 records"),
        ({"failed": 3, "acknowledged": 997, "appended_count": 997}, "3 records failed"),
        ({"appended_count": 998}, "2 acknowledged records are not in the topic"),
        ({"appended_count": 1_001}, "1 more records are in the topic"),
        ({"appended_count": 1_001, "duplicated": 1}, "1 copies too many"),
        ({"queue_full_stalls": 1}, "queue was full"),
        ({"achieved_rate": 98.9}, "98.9 records/s achieved, 100.0 asked"),
        ({"achieved_rate": 101.1}, "101.1 records/s achieved"),
        ({"appended_p99_ms": 200.1}, "99 % lateness 200.1 ms, limit 200.0 ms"),
        ({"appended_p99_ms": None, "handed_p99_ms": 201.0}, "99 % lateness 201.0 ms"),
    ],
)
def test_every_fault_is_named_once(change: dict[str, float], words: str) -> None:
    reasons = reasons_against(replace(GOOD, **change), limit_ms=200)  # type: ignore[arg-type]
    assert len(reasons) == 1
    assert words in reasons[0]
    assert reasons[0].startswith("stream 1: ")


@pytest.mark.parametrize(
    ("change", "effort", "expected"),
    [
        ({"handed_p99_ms": 300.0, "appended_p99_ms": 301.0}, Effort(loop=0.95), "sender"),
        ({"handed_p99_ms": 300.0, "appended_p99_ms": 301.0}, Effort(loop=0.3), "machine"),
        ({"appended_p99_ms": 301.0}, Effort(loop=0.95), "broker"),
        ({"achieved_rate": 50.0}, Effort(loop=0.95), "sender"),
        ({"queue_full_stalls": 5, "handed_p99_ms": 300.0}, Effort(loop=0.95), "broker"),
        ({"failed": 1}, Effort(loop=0.1), "broker"),
        ({"queue_full_stalls": 5}, Effort(client=0.9), "sender"),
        ({"appended_p99_ms": 301.0}, Effort(stolen=0.2), "machine"),
        ({"appended_count": 1_002, "duplicated": 2}, Effort(), "broker"),
    ],
)
def test_the_brake_is_named(change: dict[str, float], effort: Effort, expected: str) -> None:
    outcome = replace(GOOD, **change)  # type: ignore[arg-type]
    assert brake(outcome, effort, limit_ms=200) == expected
