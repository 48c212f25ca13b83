"""Gates: what makes a comparison fail.

    p90:+10%        the new p90 is more than a tenth above the base's (any figure of `figures`)
    p99:+50ms       … more than 50 ms above it
    p90:500ms       … above 500 ms, whatever the base is
    rate:-1%        the achieved rate is more than a hundredth below the base's
    correctness     a new run is not correct; likewise `load`, `sustainability`, `slo`

A limit alone would fail on noise, so that a change must also be more than noise to miss its gate:
by the rank test from five repetitions a side on, else by what `noise` says of the runs.
"""

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from espbench.compare.figures import FIGURES, Figure, figure
from espbench.compare.noise import explained, log_of, spread, within_run
from espbench.compare.ranktest import mann_whitney
from espbench.compare.sides import Side
from espbench.errors import UsageError
from espbench.reports.sentences import checks, show

# From here on the rank test decides.
REPETITIONS = 5
SIGNIFICANT = 0.05
# A difference of one step of the broker's clock is no difference.
CLOCK_STEP_MS = 1.0
CHECKS = {
    "correctness": "correctness",
    "load": "load",
    "sustainability": "sustainability",
    "slo": "objective",
}
_GRAMMAR = re.compile(r"([a-z0-9_.]+):([+-]?)(\d+(?:\.\d+)?)(%|ms|/s)")
Status = Literal["met", "missed", "unsure", "not judged"]


@dataclass(frozen=True, slots=True)
class Gate:
    """One `--fail`: a check, or a figure with a limit (`kind` change or ceiling)."""

    text: str
    check: str | None = None
    figure: Figure | None = None
    kind: Literal["change", "ceiling"] = "change"
    amount: float = 0.0
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a gate says of a query of a side, and why."""

    gate: str
    side: str
    query: str
    status: Status
    text: str

    def document(self) -> dict[str, str]:
        """The judgement as plain data."""
        return asdict(self)


def parse_gate(text: str) -> Gate:
    """A gate from its text; raises `UsageError` where it is none."""
    word = text.strip().lower()
    if word in CHECKS:
        return Gate(text, check=CHECKS[word])
    match = _GRAMMAR.fullmatch(word.replace(" ", ""))
    found = figure(match[1]) if match else None
    if match is None or found is None:
        known = ", ".join([*(each.name for each in FIGURES), *CHECKS])
        raise UsageError(
            f"--fail {text!r} is no gate",
            f"write p90:+10%, p99:+50ms or correctness; known: {known}",
        )
    sign, unit = match[2], match[4]
    worse = "+" if found.sign > 0 else "-"
    if (unit == "/s") != (found.unit == "per s") and unit != "%":
        raise UsageError(f"--fail {text!r}: {found.name} is in {found.unit}", "use its unit, or %")
    if not sign and unit == "%":
        raise UsageError(f"--fail {text!r} has no sign", f"write {found.name}:{worse}{match[3]}%")
    if sign and sign != worse:
        raise UsageError(
            f"--fail {text!r} would fail on an improvement", f"write {found.name}:{worse}{match[3]}"
        )
    kind: Literal["change", "ceiling"] = "change" if sign else "ceiling"
    return Gate(text, figure=found, kind=kind, amount=float(match[3]), percent=unit == "%")


def judge(gate: Gate, base: Side, new: Side, query: str) -> Judgement:
    """Whether a side meets a gate in a query."""
    status, text = _judge(gate, base, new, query)
    return Judgement(gate.text, new.name, query, status, text)


def _judge(gate: Gate, base: Side, new: Side, query: str) -> tuple[Status, str]:
    if gate.figure is None:
        return _check(str(gate.check), new, query)
    measured = gate.figure
    before, after = values(measured, base, query), values(measured, new, query)
    if not before and not after:
        return "not judged", f"no run carries {measured.title}"
    if not after or (not before and gate.kind == "change"):
        return (
            "unsure",
            f"{measured.title} is not known on {'the new' if before else 'the base'} side",
        )
    now = statistics.median(after)
    if gate.kind == "ceiling":
        over = (now - gate.amount) * measured.sign > 0
        text = f"{show(now)} {measured.unit}, the limit {show(gate.amount)}"
        return ("missed" if over else "met"), text
    was = statistics.median(before)
    worse = (now - was) * measured.sign
    limit = abs(was) * gate.amount / 100 if gate.percent else gate.amount
    said = f"{show(was)} to {show(now)} {measured.unit} ({percent_of(was, now)})"
    step = CLOCK_STEP_MS if measured.unit == "ms" else 0.0
    if worse <= max(limit, step):
        return "met", said
    real, why = _more_than_noise(gate, base, new, query)
    return ("missed" if real else "unsure"), f"{said}; {why}"


def _more_than_noise(gate: Gate, base: Side, new: Side, query: str) -> tuple[bool, str]:
    """Whether a worse figure is more than equal runs differ by, and what says so."""
    measured = gate.figure
    if measured is None:
        return False, ""
    before, after = values(measured, base, query), values(measured, new, query)
    if min(len(before), len(after)) >= REPETITIONS:
        down = measured.sign < 0
        larger, _ = mann_whitney(after, before) if down else mann_whitney(before, after)
        real = larger < SIGNIFICANT
        return real, f"rank test p = {larger:.3f}" + ("" if real else ", so it may be chance")
    if measured.quantile is None:
        return True, "rates hardly vary between equal runs"
    inside = [_inside(side, query, measured.quantile) for side in (base, new)]
    if None in [part for parts in inside for part in parts]:
        return False, "but the runs hold too few answers to tell; let them last longer, or repeat"
    spreads = [
        spread([log_of(each) for each in found], parts)
        for found, parts in zip((before, after), inside, strict=True)
    ]
    allowed = explained(*spreads)
    change = log_of(statistics.median(after)) - log_of(statistics.median(before))
    real = change * measured.sign > math.log1p(allowed)
    share = f"{100 * allowed:.0f} %"
    if real:
        return True, f"more than equal runs differ by ({share})"
    most = f"up to {share}" if allowed < 1 else "more than 100 %"
    return False, f"but equal runs differ by {most}; repeat the runs to tell"


def _inside(side: Side, query: str, quantile: float) -> list[float | None]:
    return [within_run(run.root, query, quantile) for run in side.runs]


def _check(name: str, new: Side, query: str) -> tuple[Status, str]:
    found = [
        check for verdict in new.verdicts(query) for check in checks(verdict) if check.name == name
    ]
    if not found:
        return "unsure", "the query was not judged"
    bad = [check for check in found if check.status != "passed"]
    if bad:
        return "missed", f"{bad[0].word}: {bad[0].text}"
    return "met", found[0].word if len(found) == 1 else f"{found[0].word} in {len(found)} runs"


def values(measured: Figure, side: Side, query: str) -> list[float]:
    """A figure in the runs of a side that carry it."""
    found = (measured.of(verdict) for verdict in side.verdicts(query))
    return [value for value in found if value is not None]


def percent_of(was: float, now: float) -> str:
    """The change in percent, with its sign."""
    return f"{100 * (now - was) / was:+.1f} %" if was else f"{now - was:+.1f}"


def status_of(judgements: Sequence[dict[str, Any]]) -> Status:
    """The worst of several: missed, then unsure."""
    found = {each["status"] for each in judgements}
    order: tuple[Status, ...] = ("missed", "unsure", "met")
    return next((each for each in order if each in found), "not judged")
