"""summary.md: the verdict as Markdown, for a pull request or a job's summary page."""

import re
from typing import Any

from espbench.reports.sentences import NOTHING, judged_by, show, show_ms

_SIGNS = {"passed": "✅", "failed": "❌", "unknown": "⚠️"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#|~!&])")


def markdown(report: dict[str, Any]) -> str:
    """The report as GitHub-flavoured Markdown."""
    verdict, load, machine = report["verdict"], report["load"], report["machine"]
    lines = [
        f"## {_SIGNS[verdict['status']]} {escaped(verdict['word'])}",
        "",
        escaped(verdict["text"]),
        "",
        (
            f"Run {escaped(report['run_id'])}: {show(load.get('rate'), 0)} records/s per stream "
            f"for {show(load.get('duration'), 0)} s, {escaped(machine.get('cores'))} cores of "
            f"{escaped(machine.get('processor'))}. Latency in ms after warm-up, "
            "until the commit where the database tells it."
        ),
        "",
        *table(
            ["query", "answers", "load", "keeps up", "objective"],
            ["right", "p50", "p90", "p99", "max"],
            [_row(query) for query in report["queries"]],
        ),
    ]
    reasons = [
        f"- {escaped(query['name'])}, {each['name']}: {escaped(each['text'])}"
        for query in report["queries"]
        for each in query["checks"]
        if each["status"] != "passed"
    ]
    return "\n".join([*lines, *(["", *reasons] if reasons else [])]) + "\n"


def table(words: list[str], numbers: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table: columns of words, then columns of numbers, set to the right."""
    rules = [":--"] * len(words) + ["--:"] * len(numbers)
    return [f"| {' | '.join(row)} |" for row in ([*words, *numbers], rules, *rows)]


def escaped(text: Any) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def _row(query: dict[str, Any]) -> list[str]:
    verdict = query["verdict"] or {}
    after = verdict.get(judged_by(verdict)) or {}
    counts = verdict.get("counts") or {}
    right = f"{show(counts.get('matched'), 0)} of {show(counts.get('expected'), 0)}"
    return [
        escaped(query["name"]),
        *(f"{_SIGNS[each['status']]} {escaped(each['word'])}" for each in query["checks"]),
        right if counts else NOTHING,
        *(show_ms(after.get(key), whole=query["whole_ms"]) for key in ("p50", "p90", "p99", "max")),
    ]
