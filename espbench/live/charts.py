"""The live charts: documents as the report's, from what was seen so far."""

from typing import Any

import numpy as np

from espbench.live.history import History, Series
from espbench.reports.charts import Chart, chart, line, usage_charts
from espbench.reports.thinning import Floats
from espbench.reports.timeseries import Usage

# Seconds before the sender's start that stay in sight once it sends.
LEAD_S = 5.0
NAMES = ("rates", "lag", "latency", "cpu", "memory", "batches")


def live_charts(
    seen: History | None, asked_per_s: Series, limit_ms: float | None, cores: float | None
) -> dict[str, Chart]:
    """The charts by name, the same ones at any time: without a query they are empty."""
    found = [
        _rates(seen, asked_per_s),
        chart(
            "lag",
            "Lag",
            "Input records that are not known to be answered yet: at most so many. A line that "
            "climbs means that the system does not keep up.",
            unit="records",
            series=[] if seen is None else [_line("lag", seen.lag, seen, tone=1, fill=True)],
        ),
        _latency(seen, limit_ms),
        *usage_charts(_shifted(seen), cores),
        chart(
            "batches",
            "Spark's batches",
            "How long each batch with input took, at its end; in real-time mode an interval "
            "between checkpoints, and no latency.",
            unit="ms",
            series=[]
            if seen is None
            else [_line("batch", seen.batches, seen, tone=1) | {"draw": "dots"}],
        ),
    ]
    begin, end = _span(seen)
    return {each["name"]: each | {"x": [begin, end]} for each in found}


def _rates(seen: History | None, asked_per_s: Series) -> Chart:
    series = []
    if seen is not None:
        series.append(_line("asked per stream", asked_per_s, seen, tone=5, dashed=True))
        for at, (name, rate) in enumerate(sorted(seen.rates.items(), reverse=True)):
            series.append(_line(name, rate, seen, tone=1 + at))
    text = (
        "Records per second and stream that the schedule asks for and that were sent, and answers "
        "per second, each over the last five seconds."
    )
    return chart("rates", "Rates", text, unit="per s", series=series)


def _latency(seen: History | None, limit_ms: float | None) -> Chart:
    marks = [] if limit_ms is None else [{"value": limit_ms, "label": f"limit {limit_ms:,.0f} ms"}]
    text = (
        "A few answers of every second, drawn at random: from the broker's stamp on the input to "
        "its stamp on the answer. The verdict will count all of them. Logarithmic."
    )
    series = []
    if seen is not None:
        series.append(_line("drawn answers", seen.latency, seen, tone=1) | {"draw": "dots"})
    return chart("latency", "Latency", text, unit="ms", scale="log", series=series, marks=marks)


def _line(name: str, series: Series, seen: History, **more: Any) -> dict[str, Any]:
    return line(name, _seconds(series.time_ms, seen), np.array(series.values, dtype=float), **more)


def _seconds(time_ms: list[float], seen: History) -> Floats:
    return (np.array(time_ms, dtype=np.float64) - _zero(seen)) / 1_000


def _zero(seen: History) -> float:
    """The sender's start; before it, the first thing that was seen."""
    return seen.start_ms or seen.usage_begin_ms or seen.seen_ms or 0.0


def _shifted(seen: History | None) -> list[Usage]:
    if seen is None:
        return []
    zero_s = _zero(seen) / 1_000
    return [
        Usage(each.component, each.time_s - zero_s, each.cpu_percent, each.rss_bytes)
        for each in seen.usage
    ]


def _span(seen: History | None) -> tuple[float, float]:
    """From the first to the last thing seen, never empty."""
    if seen is None:
        return 0.0, 1.0
    series = [seen.lag, seen.latency, seen.batches, *seen.rates.values()]
    times = [time for each in series for time in (each.time_ms[0:1] + each.time_ms[-1:])]
    ends = [(time - _zero(seen)) / 1_000 for time in times]
    ends += [float(time) for each in _shifted(seen) for time in (each.time_s[0], each.time_s[-1])]
    begin = min([0.0, *ends])
    if seen.start_ms and max([0.0, *ends]) > 0:
        # How long Spark took to start would squeeze what it does.
        begin = max(begin, -LEAD_S)
    return begin, max([begin + 1.0, *ends])
