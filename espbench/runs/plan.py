"""What the playbook is told of a run: its plan and its configuration, as files in its directory."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from datagen.locate import data_directory
from espbench.config import Settings, secrets_in
from espbench.errors import UsageError
from espbench.names import Query, run_of
from espbench.paths import StateDir, write_atomically
from espbench.runs.store import RunDir
from espbench.services.endpoints import embedded_database

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
# The steps of one query in their order; each is a file in playbooks/tasks and a tag.
QUERY_STEPS = (
    "topics",
    "reset",
    "monitoring",
    "query",
    "send",
    "drain",
    "capture",
    "validate",
    "cleanup",
)
# The steps around the queries.
RUN_STEPS = ("hosts", "services", "data", "load", "report")
# What a query may take to be ready, its rehearsal not counted.
READY_S = 180
KEEPABLE = ("topics", "services", "hosts")


@dataclass(frozen=True, slots=True)
class Work:
    """One query and the steps of it that are to be done."""

    query: Query
    steps: tuple[str, ...] = QUERY_STEPS


@dataclass(frozen=True, slots=True)
class Wishes:
    """How the playbook is used: what stays afterwards, which steps alone, which not, and where."""

    keep: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    inventory: Path | None = None
    wheel: Path | None = None
    wheelhouse: Path | None = None


def chosen(text: str | None, allowed: Sequence[str], what: str) -> tuple[str, ...]:
    """Names separated by commas, each one of those allowed."""
    names = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    for name in names:
        if name not in allowed:
            raise UsageError(f"there is no {what} {name!r}", f"there are: {', '.join(allowed)}")
    return names


def pid_file(run_dir: RunDir, query: Query) -> Path:
    """The pid file of a query that runs in the background."""
    return run_dir.root / f"{query.name}.pid"


def started_file(run_dir: RunDir) -> Path:
    """Holds the services that this run started."""
    return run_dir.root / "started"


def topics_file(settings: Settings, run_id: str, query: Query) -> Path:
    """Exists while topics of this query of the run do."""
    return StateDir.of(settings).topics / f"{run_of(run_id, query)}.json"


def wanted_services(settings: Settings) -> list[str]:
    """The embedded services that these settings need."""
    broker = None if settings.kafka.bootstrap_servers else "kafka"
    return [name for name in (broker, embedded_database(settings)) if name]


def write_config(run_dir: RunDir, settings: Settings) -> None:
    """The configuration of every step, without secrets; paths hold wherever a step runs."""
    config = settings.public()
    config["state_dir"] = str(settings.state_dir.expanduser().resolve())
    config["results_dir"] = str(settings.results_dir.expanduser().resolve())
    del config["database"]["password"]
    # Secrets reach the steps by the environment (`espbench.runs.drive`).
    config["kafka"]["options"] = _public(settings.kafka.options)
    config["spark"]["conf"] = _public(settings.spark.conf)
    for group, key in (("database", "password_file"), ("data", "directory")):
        if config[group][key]:
            config[group][key] = str(Path(config[group][key]).expanduser().absolute())
    write_atomically(run_dir.root / "config.yml", yaml.safe_dump(config, sort_keys=False))


def write_plan(
    run_dir: RunDir, settings: Settings, work: Sequence[Work], keep: Sequence[str] = ()
) -> None:
    """The playbook's variables; read by `vars_files`, so options of ansible-playbook beat them."""
    run_id = str(run_dir.document["run_id"])
    plan: dict[str, Any] = {
        "services": wanted_services(settings),
        "data_dir": str(data_directory(settings)),
        "jars_dir": str(StateDir.of(settings).jars),
        "ready_timeout_s": READY_S + settings.rehearsal_s,
        "send_timeout_s": settings.load.duration + 120,
        "topics_dir": str(StateDir.of(settings).topics),
        "keep": list(keep),
        "freshness_s": settings.spark.freshness,
        "queries": [
            {
                "name": each.query.name,
                "run": run_of(run_id, each.query),
                "streams": [f"{stream}={_stream_file(stream)}" for stream in each.query.streams],
                "tables": bool(each.query.tables),
                "lookup": bool(each.query.lookup_table),
                "steps": list(each.steps),
            }
            for each in work
        ],
    }
    write_atomically(run_dir.root / "plan.json", json.dumps(plan, indent=2) + "\n")


def clear(run_dir: RunDir, work: Work) -> None:
    """Remove what an earlier attempt at these steps left: it would pass for the new one's."""
    logs, name = run_dir.root / "logs", work.query.name
    leftovers = []
    if "query" in work.steps:
        leftovers += [logs / f"{name}-{what}.json" for what in ("ready", "sender", "query")]
        leftovers += [pid_file(run_dir, work.query), run_dir.root / f"{name}.pid.end"]
    if "capture" in work.steps:
        shutil.rmtree(run_dir.capture(work.query), ignore_errors=True)
    leftovers.append(run_dir.root / f"verdict-{name}.json")
    for file in leftovers:
        file.unlink(missing_ok=True)


def _public(options: Mapping[str, str]) -> dict[str, str]:
    hidden = secrets_in(options)
    return {name: value for name, value in options.items() if name not in hidden}


def _stream_file(stream: int) -> str:
    return "production_times.csv" if stream == 3 else f"sensor-{stream}.csv"
