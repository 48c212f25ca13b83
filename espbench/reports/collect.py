"""A run's files as one plain document, `espbench-report/1`: all that page, XML and text show."""

from typing import Any

from espbench.config import Settings
from espbench.errors import UsageError
from espbench.names import QUERIES, Query, parse_queries
from espbench.reports import charts, fairness, published, tested
from espbench.reports.counts import added_up, counted
from espbench.reports.queries import asked, latency_of, ran_on
from espbench.reports.reading import Files, at, number
from espbench.reports.sentences import checks, headline, judged_by, not_judged, whole_ms
from espbench.reports.timeseries import (
    read_batches,
    read_lag,
    read_latencies,
    read_lateness,
    read_peaks,
    read_usage,
)
from espbench.runs.store import RunDir

FORMAT = "espbench-report/1"


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
        "tested": tested.system(document, files, names),
        "beside": tested.beside(document),
        "load": at(document, "config", "load") or {},
        "seed": at(document, "seed"),
        "slo": _objective(document),
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


def _objective(document: dict[str, Any]) -> dict[str, Any]:
    """Percentile and limit, and whether they are the default."""
    slo = at(document, "config", "slo") or {}
    default = Settings.model_construct().slo.model_dump(mode="json")
    return {**slo, "is_default": slo == default}


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
        "question": asked(name),
        "latency": latency_of(name),
        "counts": counted(verdict) if verdict else {},
        "sum": added_up(verdict) if verdict else "",
        "judged": judged_by(verdict),
        "whole_ms": whole_ms(verdict),
        "checks": [each.document() for each in (checks(verdict) if verdict else not_judged(why))],
        "verdict": verdict,
        "engine": ran_on(files.document(f"logs/{name}-query.json")),
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
    duration_s = number(at(run, "config", "load", "duration")) or 0.0
    end_s = max([duration_s, *(lag.time_s[-1:].tolist() if lag else [])])
    batches = read_batches(files, name, start_ms, end_s) if start_ms else None
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
    expected = number(at(verdict, "counts", "expected"))
    peaks = read_peaks(files, name, start_ms, expected) if start_ms else None
    add(charts.lag_chart(lag, peaks) if lag else None, "The lag was not recorded.")
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
    add(
        charts.batches_chart(batches, report) if batches else None,
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
        charts.published_chart(
            rows,
            published.systems(rate),
            query,
            (
                number(at(verdict, "latency_ms", "p90")),
                number(at(verdict, "latency_ms_after_warmup", "p90")),
            ),
            name,
        )
        for query, verdict in verdicts.items()
        if any(row["query"] == query for row in rows)
    ]
