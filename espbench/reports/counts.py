"""A query's counts: what each of them counts, and how they add up to the answers that came."""

from typing import Any

from espbench.reports.reading import at, number
from espbench.reports.sentences import show

MEANINGS = (
    ("surplus", "updates of a window that a later update replaced: allowed"),
    ("borderline", "expected ones so close to a limit that to give or to omit them are both right"),
    ("not judged", "updates of the last window, which may be incomplete"),
    ("extra", "answers that nothing called for"),
    ("malformed", "source records that cannot be read"),
)
# Every answer that came is of one of these kinds.
_KINDS = ("matched", "wrong", "extra", "duplicate", "surplus")


def counted(verdict: dict[str, Any]) -> dict[str, Any]:
    """All counts of a verdict by name, as a table shows them."""
    counts = {str(key): value for key, value in (at(verdict, "counts") or {}).items()}
    unjudged = at(verdict, "not_judged")
    return counts if unjudged is None else counts | {"not judged": unjudged}


def added_up(verdict: dict[str, Any]) -> str:
    """`32 matched + 31,194 surplus + 774 not judged = 32,000 actual`; empty where it does not."""
    counts = counted(verdict)
    actual = number(counts.get("actual"))
    if actual is None:
        return ""
    parts = [(kind, number(counts.get(kind)) or 0.0) for kind in (*_KINDS, "not judged")]
    rest = actual - sum(count for _, count in parts)
    borderline = number(counts.get("borderline")) or 0.0
    if 0 < rest <= borderline:
        parts.append((f"of the {show(borderline, 0)} borderline", rest))
    elif rest:
        return ""
    told = [f"{show(count, 0)} {kind}" for kind, count in parts if count or kind == "matched"]
    return f"{' + '.join(told)} = {show(actual, 0)} actual"
