"""Sustainability: whether the answers kept up with the input or a backlog grew."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from validator.latency import elapsed_ms
from validator.outcome import Answers
from validator.records import Bools, Ints

LAG_SLOPE_SHARE = 0.05
LATENCY_SLOPE_MS_PER_S = 50.0
MAX_DRAIN_S = 5.0
MIN_SPAN_S = 20.0
MIN_EXPECTED = 10
STEP_MS = 1_000
# The last record stands one interval before the end of its run: tell 20 s from 19.9 s, no finer.
ROUNDING_S = 0.05
# A month; what is stamped further apart is not one run.
MAX_SPAN_MS = 31 * 86_400_000


@dataclass(frozen=True, slots=True)
class Sending:
    """When the input came, by its LogAppendTime: first, last, and where the run of it ended."""

    first_ms: int
    last_ms: int
    end_ms: float


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag, sampled every second: expected outputs owed by then, given, and the difference.

    `judged` marks the samples of the verdict, from the end of warm-up to the sender's end.
    """

    time_ms: Ints
    owed: Ints
    given: Ints
    judged: Bools

    @property
    def lag(self) -> Ints:
        """Owed and not yet given."""
        return self.owed - self.given


@dataclass(frozen=True, slots=True)
class Sustainability:
    """The verdict, its figures (None where they cannot be had) and its reasons."""

    verdict: str
    lag_slope_per_s: float | None = None
    latency_slope_ms_per_s: float | None = None
    drain_s: float | None = None
    expected_per_s: float | None = None
    reasons: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """As the verdict shows it."""
        return {
            "verdict": self.verdict,
            "lag_slope_per_s": self.lag_slope_per_s,
            "latency_slope_ms_per_s": self.latency_slope_ms_per_s,
            "drain_s": self.drain_s,
            "expected_per_s": self.expected_per_s,
            "reasons": self.reasons,
        }


def sample_lag(answers: Answers, sending: Sending, warmup_s: float) -> Lag:
    """The lag from the first input until everything was given, or for a month."""
    start = sending.first_ms + round(warmup_s * 1_000)
    earliest = start - (start - sending.first_ms) // STEP_MS * STEP_MS
    # An answer cannot be given before it is owed; a clock that says so must not make lag negative.
    given_ms = np.maximum(answers.given_ms, answers.owed_ms)[answers.given]
    latest = max([sending.last_ms, *given_ms.max(initial=sending.last_ms, keepdims=True)])
    latest = min(int(latest), sending.first_ms + MAX_SPAN_MS)
    time_ms = np.arange(min(earliest, start), latest + STEP_MS, STEP_MS, dtype=np.int64)
    return Lag(
        time_ms=time_ms,
        owed=np.searchsorted(np.sort(answers.owed_ms), time_ms, side="right"),
        given=np.searchsorted(np.sort(given_ms), time_ms, side="right"),
        judged=(time_ms >= start) & (time_ms <= sending.last_ms),
    )


def judge_sustainability(
    answers: Answers, sending: Sending, warmup_s: float, lag: Lag
) -> Sustainability:
    """Sustained, not sustained or unknown, from complete and stamped evidence."""
    start = sending.first_ms + warmup_s * 1_000
    span_s = max(0.0, (sending.end_ms - start) / 1_000)
    within = answers.owed_ms >= start
    expected = int(within.sum())
    rate = expected / span_s if span_s else None
    lag_slope = slope(lag.time_ms[lag.judged] / 1_000, lag.lag[lag.judged])
    timed = within & answers.matched
    latency = elapsed_ms(answers.owed_ms[timed], answers.given_ms[timed])
    latency_slope = slope(answers.owed_ms[timed] / 1_000, latency)
    never = int((~answers.given).sum())
    given_ms = answers.given_ms[answers.given]
    drain_s = max(0.0, (float(given_ms.max()) - sending.last_ms) / 1_000) if len(given_ms) else None

    def conclude(verdict: str, reasons: list[str]) -> Sustainability:
        return Sustainability(verdict, lag_slope, latency_slope, drain_s, rate, reasons)

    if sending.last_ms - sending.first_ms > MAX_SPAN_MS:
        return conclude("unknown", ["the input is stamped more than a month apart: not one run"])
    if span_s < MIN_SPAN_S - ROUNDING_S:
        return conclude("unknown", [f"only {span_s:.1f} s after warm-up, {MIN_SPAN_S:.0f} needed"])
    if expected < MIN_EXPECTED or rate is None:
        return conclude(
            "unknown", [f"only {expected} expected outputs after warm-up, {MIN_EXPECTED} needed"]
        )
    reasons = []
    if lag_slope is not None and lag_slope >= LAG_SLOPE_SHARE * rate:
        reasons.append(
            f"the lag grows by {lag_slope:.2f} outputs a second, {100 * lag_slope / rate:.0f} % of "
            f"the expected {rate:.1f} a second"
        )
    if latency_slope is not None and latency_slope >= LATENCY_SLOPE_MS_PER_S:
        reasons.append(f"the latency grows by {latency_slope:.0f} ms a second")
    if drain_s is not None and drain_s > MAX_DRAIN_S:
        reasons.append(f"the last answer came {drain_s:.1f} s after the last input")
    if never:
        reasons.append(f"{never:,} expected outputs were never given")
    return conclude("not sustained" if reasons else "sustained", reasons)


def slope(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float | None:
    """The least-squares slope; None where there is no line."""
    if len(x) < 2:
        return None
    centred = x - x.mean()
    spread = float((centred * centred).sum())
    return float((centred * (y - y.mean())).sum()) / spread if spread else None
