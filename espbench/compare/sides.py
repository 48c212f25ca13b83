"""Sides of a comparison: repetitions under equal conditions, and who may stand beside whom.

Two kinds of conditions. The *task* is machine, load and data: runs of different tasks are never
compared. The *system* is what one may want to compare: versions, engine, settings of Spark and of
the services. Runs that agree in both are repetitions of one another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from espbench.reports.reading import at, number
from espbench.runs.store import RunDir

TASK = {
    "processor": ("machine", "processor"),
    "cores": ("machine", "cores"),
    "memory": ("machine", "memory_bytes"),
    "rate": ("config", "load", "rate"),
    "duration": ("config", "load", "duration"),
    "warm-up": ("config", "load", "warmup"),
    "seed": ("seed",),
    "scale": ("config", "data", "scale"),
    "sensor rows": ("config", "data", "sensor_rows"),
    "downtimes": ("config", "data", "downtimes"),
    "partitions": ("config", "kafka", "partitions"),
}
# Where only the place or a name differs, the system is the same.
_PLACES = ("state_dir", "results_dir", "queries", "keep_captures", "ivy_settings", "port", "prefix")


@dataclass(frozen=True, slots=True)
class Side:
    """Runs that are repetitions of one another."""

    name: str
    runs: tuple[RunDir, ...]

    @property
    def document(self) -> dict[str, Any]:
        """What stands for all of them."""
        return self.runs[0].document

    def verdicts(self, query: str) -> list[dict[str, Any]]:
        """The verdicts of a query in all runs that have one."""
        return [
            verdict
            for run in self.runs
            for verdict in at(run.document, "queries") or []
            if at(verdict, "query") == query
        ]

    @property
    def queries(self) -> list[str]:
        """The queries that were judged in any of the runs."""
        names = (
            str(at(verdict, "query"))
            for run in self.runs
            for verdict in at(run.document, "queries") or []
        )
        return list(dict.fromkeys(names))


def task_of(run: RunDir) -> dict[str, Any]:
    """Machine, load and data of a run."""
    return {name: at(run.document, *path) for name, path in TASK.items()}


def system_of(run: RunDir) -> dict[str, Any]:
    """What ran, by dotted names: versions, settings, services."""
    document = run.document
    config = at(document, "config") or {}
    system = {f"version of {key}": value for key, value in (at(document, "versions") or {}).items()}
    for group in ("spark", "kafka", "database"):
        flat = _flat(config.get(group) or {}, f"{group}.")
        system |= {key: value for key, value in flat.items() if not key.endswith(_PLACES)}
    system["guarantee"] = config.get("guarantee")
    for service in at(document, "services") or []:
        for key, value in (at(service, "settings") or {}).items():
            if "/" not in str(value):  # directories differ from checkout to checkout
                system[f"{at(service, 'name')} {key}"] = value
    return system


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What differs, as sentences: `rate: 1000 and 2000`."""
    keys = dict.fromkeys([*one, *other])
    return [
        f"{key}: {_text(one.get(key))} and {_text(other.get(key))}"
        for key in keys
        if one.get(key) != other.get(key)
    ]


def reasons_against(base: Side, new: Side) -> list[str]:
    """Why two sides cannot be compared; empty where they can."""
    reasons = differences(task_of(base.runs[0]), task_of(new.runs[0]))
    if not set(base.queries) & set(new.queries):
        reasons.append("no query was judged in both")
    return reasons


def mixed(runs: Sequence[RunDir]) -> list[str]:
    """What differs among runs that are given as repetitions of one another."""
    found: list[str] = []
    for run in runs[1:]:
        found += differences(task_of(runs[0]), task_of(run))
        found += differences(system_of(runs[0]), system_of(run))
    return list(dict.fromkeys(found))


def grouped(runs: Sequence[RunDir]) -> list[Side]:
    """Runs of equal conditions together, in the order in which they are named."""
    groups: list[list[RunDir]] = []
    for run in runs:
        for group in groups:
            if not mixed([group[0], run]):
                group.append(run)
                break
        else:
            groups.append([run])
    return [Side(name_of(group), tuple(group)) for group in groups]


def name_of(runs: Sequence[RunDir]) -> str:
    """The id of one run, or the first id and how many more."""
    first = str(runs[0].document.get("run_id", runs[0].root.name))
    return first if len(runs) == 1 else f"{first} and {len(runs) - 1} more"


def _flat(nested: dict[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _text(value: Any) -> str:
    found = number(value)
    return "not set" if value is None else f"{found:,.12g}" if found is not None else str(value)
