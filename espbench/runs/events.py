"""Ansible's events as steps of a run: what began, what ended, what failed and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from espbench.background import last_words
from espbench.errors import ExitCode
from espbench.names import QUERIES

# Steps whose failures are told but do not fail the run.
_ENDS = {"cleanup", "stop", "leave"}
_QUERIES = {query.name for query in QUERIES}


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the run, of one query or (None) of the run as a whole."""

    name: str
    query: str | None = None
    # Whether it is done on other hosts.
    remote: bool = False

    def __str__(self) -> str:
        return f"{self.query}: {self.name}" if self.query else self.name

    @property
    def log(self) -> str:
        """The name of its log in the run's directory; on other hosts Ansible's own tells most."""
        if self.remote:
            return "ansible.log"
        return f"{self.query}-{self.name}.log" if self.query else f"{self.name}.log"


@dataclass(frozen=True, slots=True)
class Began:
    """A task of a step began; it may turn out to be skipped."""

    step: Step
    started: datetime


@dataclass(frozen=True, slots=True)
class Skipped:
    """The task that began had nothing to do."""

    step: Step


@dataclass(frozen=True, slots=True)
class Ended:
    """A command of a step ended well."""

    step: Step
    started: datetime
    seconds: float
    stdout: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A step failed: its own message, and the exit code of its command."""

    step: Step
    message: str
    code: int
    # False: an end of something, already explained by what went before.
    fatal: bool = True


News = Began | Skipped | Ended | Failed


class Reader:
    """Reads events in their order; `logs` is where the steps' logs are."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._began: dict[str, Began] = {}

    def read(self, event: Mapping[str, Any]) -> News | None:
        """What this event means for the run; None where nothing."""
        data = event.get("event_data") or {}
        step = step_of(data)
        if step is None:
            return None
        kind, uuid = event.get("event"), str(data.get("task_uuid"))
        if kind == "playbook_on_task_start":
            self._began[uuid] = Began(step, _moment(event))
            return self._began[uuid]
        began = self._began.get(uuid) or Began(step, _moment(event))
        if kind == "runner_on_skipped":
            return Skipped(began.step)
        if kind == "runner_on_ok":
            return self._ended(began, event, data.get("res") or {})
        if kind in {"runner_on_failed", "runner_on_unreachable"} and not data.get("ignore_errors"):
            return self._failed(began.step, data.get("res") or {})
        return None

    def _ended(
        self, began: Began, event: Mapping[str, Any], result: Mapping[str, Any]
    ) -> News | None:
        if "rc" not in result:
            return Skipped(began.step)
        if began.step.name in _ENDS and result["rc"] != 0:
            return self._failed(began.step, result)
        seconds = (_moment(event) - began.started).total_seconds()
        return Ended(began.step, began.started, seconds, str(result.get("stdout") or ""))

    def _failed(self, step: Step, result: Mapping[str, Any]) -> Failed:
        fatal = step.name not in _ENDS
        code = result.get("rc")
        if not isinstance(code, int):
            # Not the command but Ansible: an undefined variable, a host that cannot be reached.
            message = " ".join(_reason(result).split())
            code = ExitCode.USAGE if step.name == "inventory" else ExitCode.SERVICE
            return Failed(step, message, int(code), fatal)
        said = str(result.get("stderr") or "")
        return Failed(step, last_words(self._logs / step.log, code, said), code, fatal)


def step_of(data: Mapping[str, Any]) -> Step | None:
    """The step of an event: the task's file names it, the last word of its name the query."""
    path = PurePath(str(data.get("task_path") or "").rpartition(":")[0])
    if path.parent.name not in {"tasks", "remote"} or path.stem in {"query", "hosts"}:
        return None
    words = str(data.get("task") or "").split()
    query = words[-1] if words and words[-1] in _QUERIES else None
    return Step(path.stem, query, path.parent.name == "remote")


def _reason(result: Mapping[str, Any]) -> str:
    """Ansible's words; of a loop those of the first round that failed."""
    rounds = [each for each in result.get("results") or [] if each.get("failed")]
    return str((rounds[0] if rounds else result).get("msg") or "Ansible tells no reason here")


def _moment(event: Mapping[str, Any]) -> datetime:
    try:
        moment = datetime.fromisoformat(str(event.get("created")))
    except ValueError:
        return datetime.now(UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
