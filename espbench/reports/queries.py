"""What a reader must know of each query: what it asks, what its latency counts, how it was run."""

from typing import Any

from espbench.reports.reading import at, number
from espbench.reports.sentences import show

QUESTIONS = {
    "identity": "Every record of machine 1, unchanged: what the way through the system costs.",
    "check-sensor-status": "Average, minimum and maximum of a sensor in windows of one second.",
    "determine-outliers": "Outliers among each 500 records, by stochastic outlier selection.",
    "identify-errors": "Records whose sensor value exceeds a threshold.",
    "check-machine-power": "Low power of a machine that has no planned downtime in the database.",
    "persist-processing-times": "Start and end of production steps, written to the database.",
}
_BY_RECORD = "from the broker's time stamp on the record to its time stamp on the answer."
LATENCIES = {
    "identity": _BY_RECORD,
    "check-sensor-status": (
        "from the end of the window to the broker's stamp on the last update of it. Negative: "
        "that update, right already, came before the window was over."
    ),
    "determine-outliers": (
        "from the broker's stamp on the 500th record of the window, with which it can be answered, "
        "to its stamp on the answer. That the others waited for the window to fill is not in it."
    ),
    "identify-errors": _BY_RECORD,
    "check-machine-power": _BY_RECORD,
    "persist-processing-times": (
        "from the broker's stamp on the record to the time stamp that the query wrote into the "
        "row; until the commit: to the commit of the row, by the database's clock. The objective "
        "is judged by the latter where the database tells it."
    ),
}


def asked(name: str) -> str:
    """What the query asks; empty for one that we do not know."""
    return QUESTIONS.get(name, "")


def latency_of(name: str) -> str:
    """What the query's latency counts."""
    return f"Latency counts {LATENCIES[name]}" if name in LATENCIES else ""


def group_size(report: dict[str, Any] | None) -> int | None:
    """How many records reach Python at once in real-time mode; None where each goes by itself."""
    if at(report, "engine") != "real-time":
        return None
    if at(report, "settings", "spark.python.udf.pipelined.enabled") != "true":
        return None
    size = str(at(report, "settings", "spark.sql.execution.arrow.maxRecordsPerBatch") or "")
    return int(size) if size.isdigit() else None


def ran_on(report: dict[str, Any] | None) -> str:
    """How Spark ran the query, from the query's own report."""
    engine = at(report, "engine")
    if engine == "micro-batch":
        return "Ran on Spark in micro-batches: records are gathered, then answered together."
    if engine == "available-now":
        return "Ran on Spark over what was there already."
    if engine != "real-time":
        return ""
    interval = interval_of(number(at(report, "trigger_ms")))
    group = group_size(report)
    if group is None:
        return (
            "Ran on Spark in real-time mode: a record is answered as it comes, but for the moment "
            f"in which {interval} ends."
        )
    return (
        f"Ran on Spark in real-time mode, through Python: records are answered in groups of up to "
        f"{group}. A group that does not fill waits for the end of {interval}, and while an "
        "interval ends, some tenths of a second, nothing is answered."
    )


def interval_of(trigger_ms: float | None) -> str:
    """An interval of real-time mode, with its length where it is known."""
    return "an interval" if trigger_ms is None else f"an interval of {show(trigger_ms, 0)} ms"
