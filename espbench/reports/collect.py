"""A run's files as one plain document, `espbench-report/1`: all that page, XML and text show."""

from typing import Any

from espbench.errors import UsageError
from espbench.names import QUERIES, Query, parse_queries
from espbench.reports import charts, fairness, published
from espbench.reports.reading import Files, at, number
from espbench.reports.sentences import checks, headline, not_judged
from espbench.reports.timeseries import (
    read_batches,
    read_lag,
    read_latencies,
    read_lateness,
    read_usage,
)
from espbench.runs.store import RunDir

FORMAT = "espbench-report/1"
# What each query asks, for a reader who meets it here.
QUESTIONS = {
    "identity": "Every record of machine 1, unchanged: what the way through the system costs.",
    "check-sensor-status": "Average, minimum and maximum of a sensor in windows of one second.",
    "determine-outliers": "Outliers among each 500 records, by stochastic outlier selection.",
    "identify-errors": "Records whose sensor value exceeds a threshold.",
    "check-machine-power": "Low power of a machine that has no planned downtime in the database.",
    "persist-processing-times": "Start and end of production steps, written to the database.",
}
ENGINES = {
    "real-time": "Ran on Spark in real-time mode: every record is answered at once.",
    "micro-batch": "Ran on Spark in micro-batches: records are gathered, then answered together.",
    "available-now": "Ran on Spark over what was there already.",
}


def collect(run: RunDir) -> dict[str, Any]:
    """The report of a run, whatever state it is in."""
    document, files = run.document, Files(run.root)
    verdicts = {
        str(verdict["query"]): verdict
        for verdict in at(document, "queries") or []
        if isinstance(verdict, dict) and "query" in verdict
    }
    names = list(dict.fromkeys([*_asked(document), *verdicts]))
    state = str(at(document, "state") or "unknown")
    judged = {name: checks(verdicts[name]) if name in verdicts else None for name in names}
    error = at(document, "error")
    queries = [_query(files, document, name, verdicts.get(name)) for name in names]
    rate = number(at(document, "config", "load", "rate"))
    rows = published.beside(list(verdicts), rate)
    return {
        "format": FORMAT,
        "run_id": str(at(document, "run_id") or run.root.name),
        "state": state,
        "started": at(document, "started"),
        "ended": at(document, "ended"),
        "error": None if error is None else str(error),
        "verdict": headline(state, None if error is None else str(error), judged).document(),
        "load": at(document, "config", "load") or {},
        "seed": at(document, "seed"),
        "slo": at(document, "config", "slo") or {},
        "machine": at(document, "machine") or {},
        "versions": at(document, "versions") or {},
        "queries": queries,
        "published": {
            "source": published.SOURCE,
            "conditions": published.CONDITIONS,
            "differences": published.DIFFERENCES,
            "ours": published.ours(document),
            "rows": rows,
            "charts": _beside(rows, verdicts, document),
        },
        "fairness": fairness.sheet(document, files, names),
        "durability": fairness.durability(document),
        "samples": fairness.samples(list(verdicts.values())),
        "steps": [step for step in at(document, "steps") or [] if isinstance(step, dict)],
        "problems": files.problems,
    }


def _asked(document: dict[str, Any]) -> list[str]:
    try:
        return [query.name for query in parse_queries(str(at(document, "config", "queries") or ""))]
    except UsageError:
        return []


def _query(
    files: Files, run: dict[str, Any], name: str, verdict: dict[str, Any] | None
) -> dict[str, Any]:
    known: Query | None = next((each for each in QUERIES if each.name == name), None)
    state = at(run, "state")
    why = f"The run is marked {state}; this query was not judged."
    drawn, absent = _charts(files, run, name, verdict)
    return {
        "name": name,
        "number": known.number if known else None,
        "question": QUESTIONS.get(name, ""),
        "checks": [each.document() for each in (checks(verdict) if verdict else not_judged(why))],
        "verdict": verdict,
        "engine": ENGINES.get(str(at(files.document(f"logs/{name}-query.json"), "engine")), ""),
        "charts": drawn,
        "absent": absent,
    }


def _charts(
    files: Files, run: dict[str, Any], name: str, verdict: dict[str, Any] | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The charts that can be drawn, and a sentence for each that cannot."""
    sender = files.document(f"logs/{name}-sender.json")
    report = files.document(f"logs/{name}-query.json")
    latencies, start_ms = read_latencies(files, name, number(at(sender, "start_ms")))
    lag = read_lag(files, name, start_ms)
    lateness = read_lateness(files, name, start_ms) if start_ms else None
    batches = read_batches(files, name, start_ms) if start_ms else None
    duration_s = number(at(run, "config", "load", "duration")) or 0.0
    end_s = max([duration_s, *(lag.time_s[-1:].tolist() if lag else [])])
    usage = read_usage(files, start_ms, start_ms + end_s * 1_000) if start_ms else []
    limit_ms = number(at(verdict, "slo", "limit_ms"))
    late_ms = number(at(sender, "settings", "lateness_limit_ms"))
    drawn: list[dict[str, Any]] = []
    absent: list[str] = []

    def add(chart: dict[str, Any] | None, otherwise: str) -> None:
        if chart is None:
            absent.append(otherwise)
        else:
            drawn.append(chart)

    add(
        charts.latency_chart(latencies, limit_ms) if len(latencies) else None,
        "No latency can be shown: there is no matched answer with a time stamp.",
    )
    if len(latencies):
        drawn.append(charts.distribution_chart(latencies))
    add(charts.lag_chart(lag) if lag else None, "The lag was not recorded.")
    if lag and len(lag.time_s) > 1:
        drawn.append(charts.answers_chart(lag))
    add(charts.rates_chart(sender), "The sender left no report, so that rates are not known.")
    add(
        charts.lateness_chart(lateness, late_ms) if lateness else None,
        "The sender's lateness is not known: there is neither a capture nor an answer.",
    )
    if usage:
        drawn.extend(charts.usage_charts(usage, number(at(run, "machine", "cores"))))
    else:
        absent.append("Processor and memory of the components were not recorded (system.parquet).")
    engine, trigger_ms = at(report, "engine"), number(at(report, "trigger_ms"))
    add(
        charts.batches_chart(batches, engine, trigger_ms) if batches else None,
        "There are no batch durations: the query left no progress of Spark.",
    )
    warmup_s = number(at(verdict, "warmup_s")) or number(at(run, "config", "load", "warmup"))
    for chart in drawn:
        if chart["kind"] == "time":
            chart |= {"warmup_s": warmup_s, "x": [0, end_s or 1]}
    return drawn, absent


def _beside(
    rows: list[dict[str, Any]], verdicts: dict[str, dict[str, Any]], run: dict[str, Any]
) -> list[dict[str, Any]]:
    rate = number(at(run, "config", "load", "rate"))
    spark = at(run, "versions", "pyspark")
    name = f"this run at {rate:,.0f}/s" if rate else "this run"
    if spark:
        name = f"Spark {spark}, {name}"
    return [
        charts.published_chart(rows, query, number(at(verdict, "latency_ms", "p90")), name)
        for query, verdict in verdicts.items()
        if any(row["query"] == query for row in rows)
    ]
