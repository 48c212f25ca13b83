"""Latency, sustainability and load as pure functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from validator.latency import carries, percentile, statistics
from validator.outcome import UNKNOWN_MS, Answers
from validator.sustainability import Sending, judge_sustainability, sample_lag, slope


@given(st.lists(st.integers(-100, 10**6), min_size=1, max_size=300))
def test_figures_agree_with_numpy(sample: list[int]) -> None:
    values = np.array(sample)
    found = statistics(values)
    assert found["n"] == len(sample)
    assert (found["min"], found["max"]) == (min(sample), max(sample))
    assert found["mean"] == pytest.approx(values.mean())
    for name, percent, needed in (
        ("p50", 50, 2),
        ("p90", 90, 10),
        ("p95", 95, 20),
        ("p99", 99, 100),
    ):
        wanted = np.percentile(values, percent) if len(sample) >= needed else None
        assert found[name] == wanted
    assert found["p99_9"] is None


def test_linear_interpolation() -> None:
    values = np.arange(1, 11)
    assert statistics(values)["p90"] == pytest.approx(9.1)
    assert percentile(values, 90.0) == pytest.approx(9.1)
    assert percentile(values[:9], 90.0) is None


def test_how_many_carry_a_percentile() -> None:
    for percent, needed in (
        (50, 2),
        (90, 10),
        (95, 20),
        (99, 100),
        ("99.9", 1_000),
        (99.99, 10_000),
    ):
        assert carries(needed, percent)
        assert not carries(needed - 1, percent)


def answers(owed_ms: np.ndarray, delay_ms: np.ndarray, given: np.ndarray | None = None) -> Answers:
    count = len(owed_ms)
    came = np.ones(count, dtype=np.bool_) if given is None else given
    zeros = np.zeros(count, dtype=np.int64)
    given_ms = np.where(came, owed_ms + delay_ms, UNKNOWN_MS)
    return Answers(
        stream=zeros,
        partition=zeros,
        offset=zeros,
        id=zeros,
        owed_ms=owed_ms,
        given_ms=given_ms,
        due_ms=owed_ms,
        given=came,
        matched=came,
    )


def judge(found: Answers, seconds: float = 40.0, warmup_s: float = 10.0) -> tuple[str, list[str]]:
    last = int(found.owed_ms.max())
    sending = Sending(first_ms=0, last_ms=last, end_ms=seconds * 1_000)
    verdict = judge_sustainability(found, sending, warmup_s, sample_lag(found, sending, warmup_s))
    return verdict.verdict, verdict.reasons


OWED = np.arange(0, 40_000, 10)


def test_steady_is_sustained() -> None:
    for delay in (0, 300, 4_900):
        assert judge(answers(OWED, np.full(4_000, delay))) == ("sustained", [])


def test_each_sign_alone_is_enough() -> None:
    drained = np.full(4_000, 100)
    drained[-1] = 5_200
    verdict, reasons = judge(answers(OWED, drained))
    assert verdict == "not sustained"
    assert "after the last input" in reasons[0]

    verdict, reasons = judge(answers(OWED, OWED * 6 // 100))
    assert verdict == "not sustained"
    assert "the lag grows" in reasons[0]
    assert "the latency grows" in reasons[1]

    sparse = np.arange(0, 40_000, 2_000)
    verdict, reasons = judge(answers(sparse, sparse * 8 // 100))
    assert verdict == "not sustained"
    assert any("the latency grows" in reason for reason in reasons)

    came = np.ones(4_000, dtype=np.bool_)
    came[100] = False
    verdict, reasons = judge(answers(OWED, np.full(4_000, 100), came))
    assert (verdict, reasons) == ("not sustained", ["1 expected outputs were never given"])


def test_growth_during_warm_up_does_not_count() -> None:
    delay = np.where(OWED < 10_000, OWED // 5, 50)
    assert judge(answers(OWED, delay))[0] == "sustained"
    assert judge(answers(OWED, delay), warmup_s=0.0)[0] == "sustained"


def test_too_little_is_unknown() -> None:
    assert judge(answers(OWED[:2_900], np.full(2_900, 5)), seconds=29.0)[0] == "unknown"
    assert judge(answers(OWED[:3_000], np.full(3_000, 5)), seconds=30.0)[0] == "sustained"
    few = np.arange(12_000, 40_000, 3_200)
    assert judge(answers(few, np.full(9, 5)))[0] == "unknown"
    more = np.arange(12_000, 40_000, 2_900)
    assert judge(answers(more, np.full(10, 5)))[0] == "sustained"


def test_the_lag_is_what_is_owed_and_not_given() -> None:
    found = answers(np.array([0, 500, 1_500]), np.array([100, 2_000, 100]))
    lag = sample_lag(found, Sending(0, 1_500, 2_000.0), warmup_s=1.0)
    assert lag.time_ms.tolist() == [0, 1_000, 2_000, 3_000]
    assert lag.lag.tolist() == [1, 1, 1, 0]
    assert lag.judged.tolist() == [False, True, False, False]


def test_an_output_before_its_input_makes_no_negative_lag() -> None:
    found = answers(np.array([1_000, 2_000]), np.array([-900, -1_500]))
    lag = sample_lag(found, Sending(0, 2_000, 2_000.0), warmup_s=0.0)
    assert lag.lag.min() >= 0


def test_slope() -> None:
    assert slope(np.array([0.0, 1.0, 2.0]), np.array([1, 3, 5])) == pytest.approx(2)
    assert slope(np.array([1.0]), np.array([1])) is None
    assert slope(np.array([1.0, 1.0]), np.array([1, 2])) is None
