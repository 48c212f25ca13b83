"""The four checks of a query and the verdict of a run, in words."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from espbench.reports.reading import at, number
from validator.sustainability import LAG_SLOPE_SHARE, LATENCY_SLOPE_MS_PER_S, MAX_DRAIN_S

Status = Literal["passed", "failed", "unknown"]
CHECKS = ("correctness", "load", "sustainability", "objective")
NOTHING = "\u2013"  # a dash, where there is no figure
MINUS = "\u2212"
WHOLE_FROM = 99.95
_FAULTS = ("missing", "extra", "wrong", "duplicate")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is judged: passed, failed or unknown; `word` for a table, `text` in full."""

    name: str
    status: Status
    word: str
    text: str

    def document(self) -> dict[str, str]:
        """The check as plain data."""
        return asdict(self)


def show(value: Any, digits: int | None = None) -> str:
    """A number with thousands apart; a dash where there is none.

    Without `digits` one is shown, from a hundred on none: more is noise in a latency.
    """
    found = number(value)
    if found is None:
        return NOTHING
    if digits is None:
        digits = 0 if abs(found) >= WHOLE_FROM else 1
    # Plus nothing: what is rounded to nothing has no sign.
    return f"{round(found, digits) + 0.0:,.{digits}f}".replace("-", MINUS)


def show_ms(value: Any, *, whole: bool) -> str:
    """A latency; `whole` where clocks step by a millisecond, so that decimals would be made up."""
    found = number(value)
    if not whole or found is None:
        return show(value)
    return "< 1" if 0 <= found < 1 else show(found, 0)


def whole_ms(verdict: dict[str, Any] | None) -> bool:
    """Whether a query's answers are stamped by a broker, in whole milliseconds."""
    return "commit_latency_ms" not in (verdict or {})


def judged_by(verdict: dict[str, Any] | None) -> str:
    """The figures that the objective looks at: until the commit, where a database tells it."""
    commit = "commit_latency_ms_after_warmup"
    return commit if at(verdict, commit, "n") else "latency_ms_after_warmup"


def checks(verdict: dict[str, Any]) -> list[Check]:
    """Correctness, load, sustainability and objective of a query."""
    return [_correctness(verdict), _load(verdict), _sustained(verdict), _objective(verdict)]


def not_judged(why: str) -> list[Check]:
    """The checks of a query that has no verdict."""
    return [Check(name, "unknown", "not judged", why) for name in CHECKS]


def _correctness(verdict: dict[str, Any]) -> Check:
    word = str(at(verdict, "correctness") or "unknown")
    counts = at(verdict, "counts") or {}
    expected, matched = show(counts.get("expected"), 0), show(counts.get("matched"), 0)
    text = f"{matched} of {expected} expected answers are right"
    if faults := [f"{show(counts[kind], 0)} {kind}" for kind in _FAULTS if counts.get(kind)]:
        text += f"; {', '.join(faults)}"
    problems = [str(each) for each in at(verdict, "problems") or []]
    if problems:
        text += f"; {'; '.join(problems[:3])}"
    status: Status = {"correct": "passed", "incorrect": "failed"}.get(word, "unknown")  # type: ignore[assignment]
    return Check("correctness", status, word, f"{text}.")


def _load(verdict: dict[str, Any]) -> Check:
    load = at(verdict, "load") or {}
    asked, achieved = show(load.get("asked_rate"), 0), show(load.get("achieved_rate"), 1)
    late = show_ms(at(load, "lateness_ms", "p99"), whole=True)
    text = f"{achieved} of {asked} records/s per stream were sent; 99 % of them reached the broker"
    text += f" within {late} ms of their due time"
    text += _because(load.get("reasons"))
    valid = load.get("valid")
    if valid is None:
        return Check("load", "unknown", "not judged", f"{text}.")
    if valid:
        return Check("load", "passed", "valid", f"{text}.")
    return Check("load", "failed", "invalid", f"{text}.")


def _sustained(verdict: dict[str, Any]) -> Check:
    found = at(verdict, "sustainability") or {}
    word = str(found.get("verdict") or "unknown")
    lag, drain = _signed(found.get("lag_slope_per_s"), 2), show(found.get("drain_s"), 1)
    latency = _signed(found.get("latency_slope_ms_per_s"), 1)
    rate = number(found.get("expected_per_s"))
    # Two digits where it is small, as the slope has them; none where they say nothing.
    limit = None if rate is None else LAG_SLOPE_SHARE * rate
    most = NOTHING if limit is None else f"+{show(limit, 2 if limit < 10 else 0)}"
    text = f"lag {lag} answers/s (limit {most}), latency {latency} ms/s (limit "
    text += f"+{show(LATENCY_SLOPE_MS_PER_S, 0)}), last answer {drain} s after the sender's end "
    text += f"(limit {show(MAX_DRAIN_S, 0)} s){_because(found.get('reasons'))}"
    status: Status = {"sustained": "passed", "not sustained": "failed"}.get(word, "unknown")  # type: ignore[assignment]
    return Check("sustainability", status, word, f"{text[0].upper()}{text[1:]}.")


def _objective(verdict: dict[str, Any]) -> Check:
    slo = at(verdict, "slo") or {}
    percentile, limit = show(slo.get("percentile"), 0), show(slo.get("limit_ms"), 0)
    figure = slo.get("figure_ms")
    if figure is None:
        figure = at(verdict, "latency_ms_after_warmup", f"p{percentile}")
    until = " until the commit" if judged_by(verdict).startswith("commit") else ""
    figure = show_ms(figure, whole=whole_ms(verdict))
    text = f"p{percentile} after warm-up{until} is {figure} ms, the limit {limit} ms."
    met = slo.get("met")
    if met is None:
        return Check("objective", "unknown", "not judged", text)
    return Check("objective", "passed" if met else "failed", "met" if met else "missed", text)


def _signed(value: Any, digits: int) -> str:
    text = show(value, digits)
    return f"+{text}" if (number(value) or 0) > 0 else text


def _because(reasons: Any) -> str:
    return "; " + "; ".join(str(each) for each in reasons) if reasons else ""


def headline(state: str, error: str | None, checked: dict[str, list[Check] | None]) -> Check:
    """The verdict of the whole run: incorrect beats unknown beats a missed gate.

    `checked` holds the checks of every query that was asked for; None where it has no verdict.
    """
    judged = {name: found for name, found in checked.items() if found is not None}
    missing = [name for name in checked if name not in judged]
    everything = "run"
    if wrong := _those(judged, "correctness", "failed"):
        return Check(everything, "failed", "Incorrect", f"Wrong answers of {_listed(wrong)}.")
    if missing or state != "finished":
        what = f"No verdict for {_listed(missing)}." if missing else ""
        why = f" {error}" if error else ""
        word = {"finished": "Incomplete"}.get(state, state.capitalize())
        return Check(everything, "unknown", word, f"The run is marked {state}. {what}{why}".strip())
    if not judged:
        return Check(everything, "unknown", "Nothing judged", "The run asked for no query.")
    doubts = [
        (_those(judged, "correctness", "unknown"), "Correctness is unknown for"),
        (_those(judged, "load", "failed", "unknown"), "The load was not valid for"),
        (_those(judged, "sustainability", "unknown"), "Sustainability is unknown for"),
    ]
    gates = [
        (_those(judged, "sustainability", "failed"), "Not sustained:"),
        (_those(judged, "objective", "failed"), "Objective missed:"),
    ]
    doubted, missed = (
        [f"{text} {_listed(names)}." for names, text in each if names] for each in (doubts, gates)
    )
    if doubted:
        # What is missed all the same must not hide behind the doubt.
        return Check(everything, "unknown", "Unknown", " ".join(doubted + missed))
    if missed:
        return Check(everything, "failed", "Correct, but a gate is missed", " ".join(missed))
    count = "All answers" if len(judged) == 1 else f"All answers of all {len(judged)} queries"
    text = f"{count} are right. The load was as asked, nothing piled up, the objective was met."
    return Check(everything, "passed", "Correct and sustained", text)


def _those(judged: dict[str, list[Check]], name: str, *statuses: Status) -> list[str]:
    return [
        query
        for query, found in judged.items()
        if any(each.name == name and each.status in statuses for each in found)
    ]


def _listed(names: list[str]) -> str:
    return ", ".join(names)
