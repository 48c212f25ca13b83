"""What was tested, and beside what: the names and versions that belong over a figure."""

from typing import Any

from espbench.reports.reading import Files, at

MODES = {"real-time": "real-time mode", "micro-batch": "micro-batches"}
DATABASES = {"postgresql": "PostgreSQL", "mariadb": "MariaDB"}


def system(run: dict[str, Any], files: Files, queries: list[str]) -> str:
    """`Spark 4.3.0 (PySpark), real-time mode`; empty where no query left a report."""
    reports = [files.document(f"logs/{query}-query.json") for query in queries]
    found = [each for each in reports if each]
    if not found:
        return ""
    version = at(found[0], "versions", "spark") or at(run, "versions", "pyspark") or ""
    engines = dict.fromkeys(str(at(each, "engine")) for each in found)
    modes = " and ".join(MODES.get(engine, engine) for engine in engines)
    return f"{' '.join(filter(None, ['Spark', str(version)]))} (PySpark), {modes}"


def beside(run: dict[str, Any]) -> str:
    """Broker and database, with the versions of those that were ours."""
    config, names = at(run, "config"), []
    services = {str(at(each, "name")): each for each in at(run, "services") or []}
    versions = at(run, "versions") or {}
    if at(config, "kafka", "bootstrap_servers") is not None:
        names.append("Kafka by address")
    elif "kafka" in services:
        ours = (value for name, value in versions.items() if str(name).startswith("kafka_"))
        names.append(" ".join(["Kafka", *map(str, list(ours)[:1])]))
    known = [each for each in services if each in DATABASES]
    if not known and at(config, "database", "url"):
        names.append("a database by address")
    for name in known:
        settings = at(services[name], "settings")
        version = at(settings, "server_version") or at(settings, "version")
        names.append(" ".join(filter(None, [DATABASES[name], str(version or "")])))
    return ", ".join(names)
