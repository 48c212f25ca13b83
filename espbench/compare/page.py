"""A comparison as a page of one file, in the dress of the report."""

from typing import Any

import numpy as np

from espbench.compare.figures import SHOWN
from espbench.compare.gates import status_of
from espbench.compare.show import spread_text
from espbench.compare.sides import Side
from espbench.reports.page import render
from espbench.reports.reading import Files
from espbench.reports.thinning import percentile_curve
from espbench.reports.timeseries import read_latencies

_WORDS = {
    "missed": ("failed", "A gate is missed"),
    "unsure": ("unknown", "No gate is missed, but not all is sure"),
    "met": ("passed", "All gates are met"),
    "not judged": ("unknown", "No gate was judged"),
}


def comparison_page(comparison: dict[str, Any], base: Side, sides: list[Side]) -> str:
    """The comparison with the percentile curves of both sides."""
    charts = {
        f"s{at}-{number}": _chart(base, side, query["query"])
        for at, side in enumerate(sides)
        for number, query in enumerate(comparison["sides"][at]["queries"])
    }
    status, word = _WORDS[status_of(comparison["gates"])]
    if any(not side["comparable"] for side in comparison["sides"]):
        status, word = "unknown", "Some runs cannot be compared"
    if any(each["status"] == "missed" for each in comparison["gates"]):
        status, word = _WORDS["missed"]
    elif not comparison["gates"] and status == "unknown" and word == "No gate was judged":
        word = "Side by side, without gates"
    return render(
        "compare.html",
        charts,
        comparison=comparison,
        drawn=charts,
        shown=SHOWN,
        spread_text=spread_text,
        verdict={"status": status, "word": word},
    )


def _chart(base: Side, new: Side, query: str) -> dict[str, Any]:
    """Percentile curves, a line a run; the base grey."""
    series = []
    for side, tone, name in ((base, 5, "base"), (new, 1, "new")):
        for at, run in enumerate(side.runs):
            found, _ = read_latencies(Files(run.root), query, None)
            values = found.latency_ms[found.after_warmup]
            curve = percentile_curve(values[np.isfinite(values)])
            if curve["ms"]:
                single = len(side.runs) == 1
                label = name if single else f"{name} {at + 1}"
                legend = name if single else f"{name}, {len(side.runs)} runs"
                series.append(
                    {"name": label, "draw": "line", "tone": tone, "x": curve["odds"]}
                    | {"y": curve["ms"], "legend": None if at else legend}
                )
    text = (
        "Latency by percentile after warm-up, a line a run: grey the base, blue the new side. "
        "Where the lines of one side lie apart, so do equal runs."
    )
    return {
        "name": "curves",
        "title": query,
        "text": text,
        "kind": "odds",
        "scale": "log",
        "unit": "ms",
        "marks": [],
        "series": series,
    }
