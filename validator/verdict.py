"""The verdict: what was found, as one document and one exit code."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from espbench.errors import ExitCode, worst
from validator.outcome import Answers, Witness
from validator.records import Bools
from validator.request import Request
from validator.sustainability import Lag, Sustainability

FORMAT = "espbench-verdict/1"
CORRECT, INCORRECT, UNKNOWN = "correct", "incorrect", "unknown"
COUNTS = (
    "input",
    "expected",
    "actual",
    "matched",
    "missing",
    "extra",
    "wrong",
    "duplicate",
    "out_of_order",
    "surplus",
    "borderline",
    "malformed",
)


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency's figures in milliseconds, and the one that the SLO looks at."""

    all: dict[str, Any]
    after_warmup: dict[str, Any]
    end_to_end: dict[str, Any]
    end_to_end_after_warmup: dict[str, Any]
    commit: dict[str, Any] | None
    commit_after_warmup: dict[str, Any] | None
    slo_figure_ms: float | None


@dataclass(frozen=True, slots=True)
class Clock:
    """What is wrong with clocks: it marks the latency and leaves correctness alone."""

    backwards: dict[str, int] = field(default_factory=dict)
    before_input: int = 0
    offsets_ms: list[float] = field(default_factory=list)
    not_log_append_time: list[str] = field(default_factory=list)

    def problems(self) -> list[str]:
        """Each problem in a sentence."""
        found = [
            f"timestamps of {topic} run backwards {count:,} times"
            for topic, count in self.backwards.items()
        ]
        if self.before_input:
            found.append(f"{self.before_input:,} outputs are stamped before their input")
        found.extend(f"a broker's clock is off by {offset:+.1f} ms" for offset in self.offsets_ms)
        found.extend(
            f"{topic} is not stamped by LogAppendTime: no latency"
            for topic in self.not_log_append_time
        )
        return found

    def document(self) -> dict[str, Any]:
        """As the verdict shows it."""
        return {
            "ok": not self.problems(),
            "backwards": sum(self.backwards.values()),
            "before_input": self.before_input,
            "problems": self.problems(),
        }


@dataclass(slots=True)
class Verdict:
    """Everything about one query; `document` is its public form."""

    query: str | None
    request: Request | None = None
    correctness: str = UNKNOWN
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    witnesses: list[Witness] = field(default_factory=list)
    against: dict[str, int] = field(default_factory=dict)
    undecided: dict[str, int] = field(default_factory=dict)
    latency: Latency | None = None
    latency_label: str | None = None
    load: dict[str, Any] = field(
        default_factory=lambda: {
            "asked_rate": None,
            "achieved_rate": None,
            "lateness_ms": None,
            "valid": None,
            "reasons": [],
            "streams": [],
        }
    )
    clock: Clock = Clock()
    sustainability: Sustainability = field(default_factory=lambda: Sustainability("unknown"))
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    extras: dict[str, Any] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers.none)
    after_warmup: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    lag: Lag | None = None
    validator_s: float = 0.0

    @property
    def slo_met(self) -> bool | None:
        """Whether the SLO is met; None where there is no figure to judge."""
        figure = self.latency.slo_figure_ms if self.latency else None
        if figure is None or self.request is None:
            return None
        return figure < self.request.slo.limit_ms

    def exit_code(self) -> ExitCode:
        """4 beats 5 beats 6 beats 0. Unknown sustainability and an unjudged load do not count."""
        codes = []
        if self.correctness == INCORRECT:
            codes.append(ExitCode.INCORRECT)
        if self.correctness == UNKNOWN or self.load["valid"] is False:
            codes.append(ExitCode.UNKNOWN)
        if self.slo_met is False or self.sustainability.verdict == "not sustained":
            codes.append(ExitCode.GATE_MISSED)
        return worst(codes)

    def document(self) -> dict[str, Any]:
        """The JSON document of `espbench validate --json`."""
        latency = self.latency
        slo = self.request.slo if self.request else None
        document: dict[str, Any] = {
            "format": FORMAT,
            "query": self.query,
            "run": self.request.run if self.request else None,
            "correctness": self.correctness,
            "guarantee": self.request.guarantee if self.request else None,
            "counts": {name: self.counts[name] for name in COUNTS},
            "witnesses": [witness.document() for witness in self.witnesses],
            "latency_ms": latency.all if latency else None,
            "latency_ms_after_warmup": latency.after_warmup if latency else None,
            "end_to_end_ms": latency.end_to_end if latency else None,
            "end_to_end_ms_after_warmup": latency.end_to_end_after_warmup if latency else None,
        }
        if self.request and self.request.query.output_table:
            # Null where the table does not tell commit times.
            document["commit_latency_ms"] = latency.commit if latency else None
            document["commit_latency_ms_after_warmup"] = (
                latency.commit_after_warmup if latency else None
            )
        return document | {
            "latency_label": self.latency_label,
            "latency_marks": self.clock.problems(),
            "clock": self.clock.document(),
            "load": self.load,
            "sustainability": self.sustainability.document(),
            "slo": {
                "percentile": _plain(slo.percentile) if slo else None,
                "limit_ms": _plain(slo.limit_ms) if slo else None,
                "figure_ms": latency.slo_figure_ms if latency else None,
                "met": self.slo_met,
            },
            "problems": self.problems,
            "notes": self.notes,
            "against": self.against,
            "undecided": self.undecided,
            **self.extras,
            "warmup_s": self.request.warmup_s if self.request else None,
            "validator_s": round(self.validator_s, 3),
        }


def _plain(number: float) -> float | int:
    """2000 rather than 2000.0."""
    return int(number) if float(number).is_integer() else number
