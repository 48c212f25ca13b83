"""junit.xml: a suite per query, a test case per check, for the tools that read nothing else."""

import re
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from espbench.reports.reading import number
from espbench.reports.sentences import show

# What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: dict[str, Any]) -> str:
    """The report as JUnit XML. A check that is unknown is an error, one that failed a failure."""
    root = Element("testsuites", {"name": _clean(f"espbench {report['run_id']}")})
    totals = {"tests": 0, "failures": 0, "errors": 0}
    for query in report["queries"]:
        suite = _suite(root, query, report)
        for key in totals:
            totals[key] += int(suite.get(key, "0"))
    for key, value in totals.items():
        root.set(key, str(value))
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, query: dict[str, Any], report: dict[str, Any]) -> Element:
    checks = query["checks"]
    suite = SubElement(
        root,
        "testsuite",
        {
            "name": _clean(query["name"]),
            "tests": str(len(checks)),
            "failures": str(sum(each["status"] == "failed" for each in checks)),
            "errors": str(sum(each["status"] == "unknown" for each in checks)),
            "skipped": "0",
            "time": _seconds(query, report),
        },
    )
    if report["started"]:
        suite.set("timestamp", _clean(str(report["started"])[:19]))
    for each in checks:
        case = SubElement(
            suite,
            "testcase",
            {
                "classname": _clean(f"espbench.{query['name']}"),
                "name": _clean(each["name"]),
                # A judgement takes no time; the steps' stand at the suite.
                "time": "0",
            },
        )
        if each["status"] == "passed":
            SubElement(case, "system-out").text = _clean(each["text"])
            continue
        kind = "failure" if each["status"] == "failed" else "error"
        found = SubElement(case, kind, {"message": _clean(each["word"]), "type": kind})
        found.text = _clean("\n".join([each["text"], *_figures(query)]))
    return suite


def _seconds(query: dict[str, Any], report: dict[str, Any]) -> str:
    """How long the query's steps took together."""
    own = [
        number(step.get("seconds"))
        for step in report["steps"]
        if step.get("query") == query["name"]
    ]
    return f"{sum(filter(None, own)):.3f}"


def _figures(query: dict[str, Any]) -> list[str]:
    after = (query["verdict"] or {}).get("latency_ms_after_warmup") or {}
    names = [name for name in ("p50", "p90", "p99", "max") if after.get(name) is not None]
    figures = ", ".join(f"{name} {show(after[name])} ms" for name in names)
    return [f"latency after warm-up: {figures}"] if figures else []


def _clean(text: Any) -> str:
    return _FORBIDDEN.sub("\ufffd", str(text))
