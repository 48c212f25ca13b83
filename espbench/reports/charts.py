"""Charts as plain documents: a title, a sentence that says what is shown, and thinned series.

`kind` tells the page how to draw: `time` (seconds from the sender's start), `odds` (percentiles on
a logarithmic axis) or `strip` (a row per name on a logarithmic axis); `scale` is the values'.
"""

from typing import Any

import numpy as np

from espbench.reports.queries import group_size, interval_of
from espbench.reports.reading import at, number
from espbench.reports.sentences import show
from espbench.reports.thinning import (
    LINE_POINTS,
    Floats,
    bands,
    cloud,
    percentile_curve,
    rounded,
    thin_line,
)
from espbench.reports.timeseries import (
    Batches,
    LagSeries,
    Latencies,
    Lateness,
    Usage,
    everything_else,
)

Chart = dict[str, Any]
MEGABYTE = 1_000_000
# Below this many answers an interval, lines would only repeat the dots.
ENOUGH_FOR_LINES = 10
# More lines than this in one chart cannot be told apart.
MOST_COMPONENTS = 9
TICKS = (
    "A kernel that counts the host by ticks counts bursts that fall in step with them too high or "
    "too low."
)
# Of a core; what never reaches it would only lie on the axis.
IDLE_PERCENT = 1
# A component looks the same in all charts; the whole machine is not one among others.
TONES = {
    "host": 5,
    "spark": 1,
    "kafka": 2,
    "postgresql": 3,
    "mariadb": 3,
    "sender": 4,
    "spark-python": 6,
    "query": 7,
    "monitor": 8,
}


def chart(name: str, title: str, text: str, **more: Any) -> Chart:
    """A chart over time, linear and empty unless `more` says otherwise."""
    base = {"name": name, "title": title, "text": text, "kind": "time", "scale": "linear"}
    return base | {"unit": "", "marks": [], "series": []} | more


def line(name: str, time_s: Floats, values: Floats, **more: Any) -> dict[str, Any]:
    """A line through thinned points."""
    time_s, values = thin_line(time_s, values)
    return {"name": name, "draw": "line", "x": rounded(time_s), "y": rounded(values)} | more


def latency_chart(found: Latencies, limit_ms: float | None) -> Chart:
    """Latency over time: every record in a cloud, the percentiles of each second as lines."""
    marks = [] if limit_ms is None else [{"value": limit_ms, "label": f"limit {limit_ms:,.0f} ms"}]
    text = (
        f"Each of the {len(found):,} answers is a dot, at the time its input arrived. Logarithmic."
    )
    lines = []
    per_second = bands(found.time_s, found.latency_ms)
    (width_s,) = per_second["width_s"] or [1.0]
    if len(found) >= ENOUGH_FOR_LINES * len(per_second["time_s"]):
        lines = [
            {"name": name, "draw": "line", "tone": tone, "step_s": width_s}
            | {"x": per_second["time_s"], "y": per_second[key]}
            for key, name, tone in (("p50", "median", 3), ("p90", "p90", 2), ("max", "maximum", 5))
        ]
        text = (
            f"All {len(found):,} answers are in the cloud, each at the time its input arrived; "
            "darker means more of them. The lines are median, 90th percentile and maximum of each "
            f"{'second' if width_s == 1 else f'{width_s:,.0f} seconds'}. Logarithmic."
        )
    series = [{"name": "answers", "draw": "cloud", **cloud(found.time_s, found.latency_ms)}, *lines]
    more: dict[str, Any] = {"unit": "ms", "scale": "log", "marks": marks, "wide": True}
    return chart("latency", "Latency over time", text, series=series, **more)


def distribution_chart(found: Latencies) -> Chart:
    """Latency by percentile, with and without the warm-up, and end to end."""
    after = found.latency_ms[found.after_warmup]
    late = found.end_to_end_ms[found.after_warmup]
    curves = [
        ("after warm-up", after, 1, False),
        ("all answers", found.latency_ms, 5, False),
        ("after warm-up, from due time", late[np.isfinite(late)], 2, True),
    ]
    series = []
    for name, values, tone, dashed in curves:
        curve = percentile_curve(values)
        if curve["ms"]:
            x, y = curve["odds"], curve["ms"]
            series.append(
                {"name": name, "draw": "line", "x": x, "y": y, "tone": tone, "dashed": dashed}
            )
    text = (
        "How many answers took how long: at 99 % stands the time within which 99 of 100 came. The "
        "axis stretches the rare slow ones; a curve ends where its sample cannot carry more."
    )
    more: dict[str, Any] = {"kind": "odds", "unit": "ms", "scale": "log"}
    return chart("distribution", "Latency by percentile", text, series=series, **more)


def lag_chart(found: LagSeries, peaks: tuple[Floats, Floats] | None = None) -> Chart:
    """Answers owed and not yet given, and the highest lag of each second where it is known."""
    climbs = "A line that climbs means that the system does not keep up."
    series = [line("at the second", found.time_s, found.lag, tone=1, fill=True)]
    if peaks is None:
        text = f"Answers that were owed and not yet given, at every second, not between. {climbs}"
        return chart("lag", "Lag", text, unit="answers", whole=True, series=series)
    text = (
        "Answers that were owed and not yet given, as the verdict counts them, once a second, and "
        f"the highest number within each second. {climbs}"
    )
    # A staircase of seconds, unless they were too many for each to be kept.
    step: dict[str, Any] = {"step_s": 1} if len(peaks[0]) <= 2 * LINE_POINTS else {}
    series.insert(0, line("highest of the second", *peaks, tone=5, **step))
    return chart("lag", "Lag", text, unit="answers", whole=True, series=series)


def answers_chart(found: LagSeries) -> Chart:
    """Answers that fell due and that came, per second."""
    steps = np.diff(found.time_s)
    apart, time_s = steps > 0, found.time_s[1:]
    series = [
        line(name, time_s[apart], np.diff(counts)[apart] / steps[apart], tone=tone, dashed=dashed)
        for name, counts, tone, dashed in (
            ("owed", found.owed, 5, True),
            ("given", found.given, 1, False),
        )
    ]
    text = (
        "Answers per second that the input called for, and that came. Where the second line falls "
        "behind the first, lag builds up; where it rises above it, lag is worked off."
    )
    return chart("answers", "Answers", text, unit="per s", series=series)


def rates_chart(sender: dict[str, Any] | None) -> Chart | None:
    """What was asked and what was sent, per second."""
    series: list[dict[str, Any]] = []
    for stream in (sender or {}).get("streams", []):
        asked = np.array(stream.get("asked_per_second", []), dtype=np.float64)
        sent = np.array(stream.get("per_second", []), dtype=np.float64)
        if len(sent) > len(asked):
            sent = sent[:-1]  # a second of which only the beginning was used
        name = f"stream {stream.get('stream')}"
        tone = 1 + len(series) // 2
        series.append(line(f"{name} asked", _seconds(asked), asked, tone=tone, dashed=True))
        series.append(line(f"{name} sent", _seconds(sent), sent, tone=tone))
    if not series:
        return None
    text = (
        "Records per second that the schedule asked for and that the sender handed to the broker. "
        "Where the lines part, the load was not the one that was asked for."
    )
    return chart("rates", "Rates", text, unit="per s", series=series)


def _seconds(values: Floats) -> Floats:
    """The middle of every second."""
    return np.arange(len(values), dtype=np.float64) + np.float64(0.5)


def lateness_chart(found: Lateness, limit_ms: float | None = None) -> Chart:
    """How late the source records were stamped; `limit_ms` is the load's own limit."""
    series = []
    for place, (name, (time_s, late_ms)) in enumerate(sorted(found.streams.items())):
        per_second = bands(time_s, late_ms)
        x = per_second["time_s"]
        prefix = "" if len(found.streams) == 1 else f"{name}, "
        one = {"draw": "line", "x": x}
        series.append(one | {"name": f"{prefix}median", "y": per_second["p50"], "tone": 1 + place})
        worst = {"name": f"{prefix}maximum", "y": per_second["max"], "tone": 1 + place}
        series.append(one | worst | {"dashed": True})
    whose = "All source records" if found.every else "Only the source records that have an answer"
    text = (
        "How long after its due time a record was stamped by the broker: what sender and broker "
        f"added, and no part of the latency. {whose} are counted."
    )
    marks = []
    if limit_ms is not None:
        marks = [{"value": limit_ms, "label": f"limit for 99 %: {show(limit_ms, 0)} ms"}]
    more: dict[str, Any] = {"unit": "ms", "scale": "log", "series": series, "marks": marks}
    return chart("lateness", "Sender's lateness", text, **more)


def batches_chart(found: Batches, report: dict[str, Any] | None) -> Chart:
    """How long Spark's batches took; `report` is the query's own."""
    time_s, duration_ms = thin_line(found.time_s, found.duration_ms)
    count = f"{len(time_s):,}"
    if len(time_s) < len(found.time_s):
        count += f" of {len(found.time_s):,} (the longest and shortest of each stretch)"
    text = f"How long Spark's batches with input took, at their end: {count}."
    if at(report, "engine") == "real-time":
        group = group_size(report)
        waits = (
            "Records are answered before it ends; an interval is no latency."
            if group is None
            else f"Groups of {group} records are answered before it ends; those left over, then."
        )
        interval = interval_of(number(at(report, "trigger_ms")))
        text = f"How long {interval} took, from checkpoint to checkpoint, at its end: {count} "
        text += f"in the time shown. {waits}"
    series = [
        {
            "name": "batch",
            "draw": "dots",
            "x": rounded(time_s),
            "y": rounded(duration_ms),
            "tone": 1,
        }
    ]
    return chart("batches", "Spark's batches", text, unit="ms", series=series)


def usage_charts(found: list[Usage], cores: float | None) -> list[Chart]:
    """Processor and memory of every component."""
    rest = everything_else(found)
    shown = found[:MOST_COMPONENTS]
    left = f" The busiest {MOST_COMPONENTS} of {len(found)}." if len(found) > len(shown) else ""
    machine = f" The machine has {cores:.0f}, so {cores * 100:.0f} is all of it." if cores else ""
    looks = _looks([each.component for each in shown])
    cpu = [
        *(line(each.component, each.time_s, each.cpu_percent, tone=5, fill=True) for each in rest),
        *(
            line(each.component, each.time_s, each.cpu_percent, **looks[each.component])
            for each in shown
            if not _idle(each)
        ),
    ]
    idle = [each.component for each in shown if _idle(each)]
    memory = [
        line(each.component, each.time_s, each.rss_bytes / MEGABYTE, **looks[each.component])
        for each in shown
    ]
    cpu_text = f"Processor time of every component; 100 is one core.{machine}{left}"
    if rest:
        precise = any(each.processes_percent is not None for each in found)
        whose = "that of all processes" if precise else "the host's"
        cpu_text += f" Everything else: {whose}, less that of all components. {TICKS}"
    if idle:
        cpu_text += f" Always below {IDLE_PERCENT} % and not drawn: {', '.join(idle)}."
    memory_text = "Resident memory of every component; for the host: all memory in use." + left
    return [
        chart("cpu", "Processor", cpu_text, unit="% of a core", series=cpu),
        chart("memory", "Memory", memory_text, unit="MB", series=memory),
    ]


def _idle(usage: Usage) -> bool:
    return not (np.nan_to_num(usage.cpu_percent) >= IDLE_PERCENT).any()


def _looks(names: list[str]) -> dict[str, dict[str, Any]]:
    """The colour of each component; those that have none of their own get what is left."""
    own = {name: TONES[name] for name in names if name in TONES}
    left = [tone for tone in sorted({*TONES.values()}) if tone not in own.values()] or [5]
    others = [name for name in names if name not in own]
    tones = own | {name: left[at % len(left)] for at, name in enumerate(others)}
    return {name: {"tone": tone, "dashed": name.startswith("host")} for name, tone in tones.items()}


def published_chart(
    rows: list[dict[str, Any]],
    systems: list[tuple[str, int]],
    query: str,
    ours: tuple[float | None, float | None],
    name: str,
) -> Chart:
    """Our p90, of all answers and after warm-up, beside the published ones of a query.

    A system (with its rate) of which nothing was published has a strip without values.
    """
    p90, after = ours
    strips: list[dict[str, Any]] = []
    if p90 is not None:
        strips.append({"name": name, "values": [p90] * 3, "after": after, "ours": True})
    for system, rate in systems:
        strip: dict[str, Any] = {"name": f"{system} at {rate:,}/s", "values": []}
        for row in rows:
            if (row["query"], row["system"], row["rate"]) == (query, system, rate):
                strip["values"] = [row["lowest_ms"], row["median_ms"], row["highest_ms"]]
                strip["hollow"] = row["correct_runs"] == 0
        strips.append(strip)
    text = "The 90th percentile over all answers, of this run and as published; lower is better."
    return chart("published", query, text, kind="strip", unit="ms", scale="log", series=strips)
