"""The fairness sheet: all that a sceptic wants to know before believing a figure."""

from typing import Any

import numpy as np

from espbench.config import Settings
from espbench.reports.charts import TICKS
from espbench.reports.reading import Files, at, gibibytes, number
from espbench.reports.sentences import show
from espbench.reports.timeseries import everything_else, read_usage

Rows = list[dict[str, str]]
# A setting of the durability that a benchmark is tempted to switch off.
DURABILITY = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "innodb_flush_log_at_trx_commit": "1",
}
# Of the machine: so much of others' work is worth a warning.
MUCH_PERCENT = 10
_CARRIED = ((1_000, "p99.9"), (100, "p99"), (20, "p95"), (10, "p90"), (2, "p50"))


def sheet(run: dict[str, Any], files: Files, queries: list[str]) -> list[dict[str, Any]]:
    """Groups of named facts, in the order in which they are asked for."""
    groups = [
        ("Machine", _machine(run)),
        ("Versions", _plain(at(run, "versions"))),
        ("Settings of espbench that were changed for this run", changed(at(run, "config"))),
        ("Load and data", _load(run)),
        ("Other work on the machine", _others(run, files, queries)),
        ("Clocks", _clocks(run, files, queries)),
        *((f"Service: {each['name']}", each["rows"]) for each in _services(run)),
        *_senders(files, queries),
        *_sparks(files, queries),
    ]
    return [{"name": name, "rows": rows} for name, rows in groups if rows]


def durability(run: dict[str, Any]) -> list[str]:
    """What was made less durable than a real system would have it; empty is honest."""
    found = []
    for service in at(run, "services") or []:
        for key, value in (at(service, "settings") or {}).items():
            if key in DURABILITY and str(value).lower() != DURABILITY[key]:
                found.append(f"{at(service, 'name')}: {key} = {value}")
    return found


def changed(config: Any) -> Rows:
    """The settings that differ from the defaults, by their dotted names."""
    default = _flat(Settings.model_construct().model_dump(mode="json"))
    given = _flat(config if isinstance(config, dict) else {})
    rows = [
        _row(key, value, f"default: {_text(default.get(key))}")
        for key, value in given.items()
        if value != default.get(key)
    ]
    return rows or [_row("none", "every setting is the default")]


def samples(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many answers stand behind each query's percentiles, and which percentiles they carry."""
    rows = []
    for verdict in verdicts:
        kinds = {
            "all": "latency_ms",
            "after_warmup": "latency_ms_after_warmup",
            "commit": "commit_latency_ms",
        }
        counts = {kind: number(at(verdict, key, "n")) for kind, key in kinds.items()}
        after = counts["after_warmup"] or 0
        carried = next((name for least, name in _CARRIED if after >= least), "none")
        rows.append({"query": str(at(verdict, "query")), **counts, "highest": carried})
    return rows


def _machine(run: dict[str, Any]) -> Rows:
    machine = at(run, "machine") or {}
    return [
        _row("processor", machine.get("processor")),
        _row("cores", machine.get("cores")),
        _row("memory", gibibytes(machine.get("memory_bytes"))),
        _row("system", machine.get("system")),
    ]


def _load(run: dict[str, Any]) -> Rows:
    config = at(run, "config")
    downtimes = at(config, "data", "downtimes")
    return [
        _row("rate", f"{show(at(config, 'load', 'rate'), 0)} records/s per stream"),
        _row("duration", f"{show(at(config, 'load', 'duration'), 0)} s"),
        _row("warm-up", f"{show(at(config, 'load', 'warmup'), 0)} s, reported with and without"),
        _row("seed", at(run, "seed")),
        _row("scale factor", at(config, "data", "scale")),
        _row("rows of a sensor stream", show(at(config, "data", "sensor_rows"), 0)),
        _row("downtimes", "during the run" if downtimes == "run" else downtimes),
        _row("partitions", at(config, "kafka", "partitions")),
        _row("declared guarantee", at(config, "guarantee")),
        _row("freshness of looked-up rows", f"{show(at(config, 'spark', 'freshness'), 0)} s"),
    ]


def _clocks(run: dict[str, Any], files: Files, queries: list[str]) -> Rows:
    rows = []
    for verdict in at(run, "queries") or []:
        clock = at(verdict, "clock") or {}
        problems = "; ".join(str(each) for each in clock.get("problems") or [])
        marks = "; ".join(str(each) for each in at(verdict, "latency_marks") or [])
        fine = (
            "time stamps never ran backwards; no answer was stamped before the record it rests on"
        )
        text = fine if clock.get("ok") else problems or "not checked"
        rows.append(_row(at(verdict, "query"), "; ".join(filter(None, [text, marks]))))
    offsets = []
    for query in queries:
        capture = files.document(f"capture/{query}/capture.json")
        clocks = at(capture, "clocks") or []
        offsets += [_row(f"{query}: offset", _text(clock)) for clock in clocks]
    if not offsets:
        remote = at(run, "config", "kafka", "bootstrap_servers") is not None
        why = "not recorded" if remote else "none: broker and database run on one machine"
        offsets = [_row("offset between clocks", why)]
    return [*rows, *offsets]


def _others(run: dict[str, Any], files: Files, queries: list[str]) -> Rows:
    """Processor time that no component of ours used while the sender sent."""
    cores = number(at(run, "machine", "cores"))
    means: dict[str, float] = {}
    precise = False
    for query in queries:
        sender = files.document(f"logs/{query}-sender.json")
        start_ms, end_ms = number(at(sender, "start_ms")), number(at(sender, "end_ms"))
        if start_ms is None or end_ms is None:
            continue
        found = read_usage(files, start_ms, end_ms)
        rest = everything_else(found)
        precise |= any(each.processes_percent is not None for each in found)
        if rest and len(rest[0].time_s):
            # Of several hosts the one where it is most.
            means[query] = max(float(np.nanmean(each.cpu_percent)) for each in rest)
    if not means:
        return []
    mean, worst = sum(means.values()) / len(means), max(means, key=lambda query: means[query])
    text = f"{show(mean, 0)} % of a core on the mean"
    much = False
    if cores:
        text += f", {show(mean / cores, 0)} % of the machine"
        much = mean / cores >= MUCH_PERCENT
    text += f"; most in {worst}: {show(means[worst], 0)} % of a core"
    note = (
        "all processes but our components"
        if precise
        else f"the host's, less that of all components: other programs, interrupts. {TICKS}"
    )
    row = _row("processor time of nobody we know", text, note)
    return [{**row, "status": "unknown"} if much else row]


def _services(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": str(at(service, "name")),
            "rows": [_row("address", at(service, "address")), *_plain(at(service, "settings"))],
        }
        for service in at(run, "services") or []
    ]


def _senders(files: Files, queries: list[str]) -> list[tuple[str, Rows]]:
    found = {query: files.document(f"logs/{query}-sender.json") for query in queries}
    settings = {
        query: at(each, "settings")
        for query, each in found.items()
        if isinstance(at(each, "settings"), dict)
    }
    # The profile is per stream, and so differs between queries that read different ones.
    return _common("Sender", settings, {"profiles"})


def _sparks(files: Files, queries: list[str]) -> list[tuple[str, Rows]]:
    reports = {query: files.document(f"logs/{query}-query.json") for query in queries}
    engines = [
        _row(query, f"{at(report, 'engine')}, {at(report, 'master')}")
        for query, report in reports.items()
        if report
    ]
    settings = {
        query: at(each, "settings") for query, each in reports.items() if at(each, "settings")
    }
    options = {
        query: {**(at(each, "source_options") or {}), **(at(each, "sink_options") or {})}
        for query, each in reports.items()
        if each
    }
    hidden = {"spark.app.name", "spark.driver.extraClassPath", "spark.executor.extraClassPath"}
    return [
        ("Engine of each query", engines),
        *_common("Spark settings that espbench sets", settings, hidden),
        *_common("Spark's Kafka source and sink", options, {"topic"}),
    ]


def _common(
    name: str, settings: dict[str, dict[str, Any]], hidden: set[str]
) -> list[tuple[str, Rows]]:
    """Settings by query: the value of the most queries, and who differs from it."""
    rows = []
    for key in dict.fromkeys(key for each in settings.values() for key in each):
        values: dict[str, list[str]] = {}
        for query, each in settings.items():
            values.setdefault(_text(each.get(key)), []).append(query)
        paths = any("/" in value for value in values)
        if key in hidden or (paths and len(values) > 1):
            continue
        usual, *others = sorted(values, key=lambda value: -len(values[value]))
        told = [f"{value} for {', '.join(values[value])}" for value in others]
        rows.append(_row(key, "; ".join([usual, *told])))
    return [(name, rows)] if rows else []


def _plain(mapping: Any) -> Rows:
    return [_row(key, value) for key, value in (mapping or {}).items()]


def _row(name: Any, value: Any, note: str = "") -> dict[str, str]:
    return {"name": str(name), "value": _text(value), "note": note}


def _text(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_text(each)}" for key, each in value.items()) or "none"
    return str(value)


def _flat(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
