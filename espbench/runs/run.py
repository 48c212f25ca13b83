"""The whole benchmark: a run's directory, the playbook that fills it, and what its verdicts mean.

    services → data → load → per query: topics, reset, query, send, drain, capture, validate

Each step is a task file in playbooks/tasks; `espbench.runs.drive` watches over them.
"""

from datetime import UTC, datetime
from typing import Any

from pydantic import SecretStr

from espbench.config import Settings
from espbench.errors import EspbenchError, ExitCode, Interrupted, UsageError, worst
from espbench.monitor.store import merge_system
from espbench.names import Query, find_query
from espbench.paths import StateDir, locked, make_dir
from espbench.reports.write import write_reports
from espbench.runs.drive import Driver, adopt_verdict
from espbench.runs.machine import machine, versions
from espbench.runs.plan import Wishes, Work, clear, topics_file, write_config, write_plan
from espbench.runs.resume import Remains, remaining_work
from espbench.runs.secret import secret_file
from espbench.runs.store import RunDir
from espbench.runs.view import View
from espbench.services.endpoints import embedded_database, parse_database_url

_NOTHING_ASKED = Wishes()


def run_benchmark(
    settings: Settings,
    queries: tuple[Query, ...],
    run_id: str,
    *,
    quiet: bool,
    wishes: Wishes = _NOTHING_ASKED,
) -> tuple[RunDir, ExitCode]:
    """Run the queries one after another; the run's directory and the exit code of its verdicts."""
    state = make_dir(StateDir.of(settings).root)
    with locked(state / "run.lock", f"another run is going on in {state}"):
        run_dir = prepare_run(settings, queries, run_id, wishes=wishes)
        return _drive(settings, run_dir, [Work(query) for query in queries], wishes, quiet=quiet)


def prepare_run(
    settings: Settings,
    queries: tuple[Query, ...],
    run_id: str,
    *,
    wishes: Wishes = _NOTHING_ASKED,
) -> RunDir:
    """Make the run's directory: parameters, versions, machine, and the playbook's plan."""
    document: dict[str, Any] = {
        "state": "prepared",
        "started": datetime.now(UTC).isoformat(),
        "ended": None,
        "config": settings.public(),
        "seed": settings.data.seed,
        "machine": machine(),
        "versions": versions(settings),
        "services": [],
        "steps": [],
        "queries": [],
    }
    run_dir = RunDir.create(settings.results_dir, run_id, document)
    write_config(run_dir, settings)
    write_plan(run_dir, settings, [Work(query) for query in queries], wishes.keep)
    return run_dir


def resume_run(
    settings: Settings,
    queries: tuple[Query, ...],
    run_dir: RunDir,
    *,
    quiet: bool,
    from_step: str | None = None,
    wishes: Wishes = _NOTHING_ASKED,
) -> tuple[RunDir, ExitCode]:
    """Go on with a run that is not finished; queries that have a verdict are left alone."""
    document = run_dir.document
    if document["state"] == "finished":
        raise UsageError(f"the run {document['run_id']} is finished", "make a new one")
    state = make_dir(StateDir.of(settings).root)
    with locked(state / "run.lock", f"another run is going on in {state}"):
        judged = {str(verdict["query"]) for verdict in document["queries"]}
        # Verdicts of a playbook that was called by hand count as well.
        judged |= {
            query.name
            for query in queries
            if query.name not in judged and adopt_verdict(run_dir, query.name)
        }
        remains = {query.name: _remains(settings, run_dir, query) for query in queries}
        work = remaining_work(queries, judged, remains, from_step)
        for each in work:
            clear(run_dir, each)
        document["versions"] = versions(settings)
        document.setdefault("resumed", []).append(datetime.now(UTC).isoformat())
        document.pop("error", None)
        write_plan(run_dir, settings, work, wishes.keep)
        return _drive(settings, run_dir, work, wishes, quiet=quiet)


def exit_code(verdicts: list[dict[str, Any]]) -> ExitCode:
    """What the verdicts of a run mean together."""
    return worst([code for verdict in verdicts for code in _codes(verdict)])


def _codes(verdict: dict[str, Any]) -> list[ExitCode]:
    unknown = (
        verdict["correctness"] == "unknown",
        verdict["load"]["valid"] is not True,
        verdict["sustainability"]["verdict"] == "unknown",
    )
    missed = (
        verdict["slo"]["met"] is False,
        verdict["sustainability"]["verdict"] == "not sustained",
    )
    codes = [ExitCode.INCORRECT] if verdict["correctness"] == "incorrect" else []
    codes += [ExitCode.UNKNOWN] if any(unknown) else []
    codes += [ExitCode.GATE_MISSED] if any(missed) else []
    return codes


def _drive(
    settings: Settings, run_dir: RunDir, work: list[Work], wishes: Wishes, *, quiet: bool
) -> tuple[RunDir, ExitCode]:
    _mark(run_dir, "running")
    try:
        if work:
            with (
                View(run_dir.root / "logs", quiet=quiet) as view,
                secret_file(_password(settings)) as password_file,
            ):
                Driver(settings, run_dir, wishes, view, password_file).run()
    except BaseException as error:
        interrupted = isinstance(error, (KeyboardInterrupt, Interrupted))
        _mark(run_dir, "interrupted" if interrupted else "failed", error)
        raise
    run_dir.document["queries"].sort(key=lambda verdict: find_query(verdict["query"]).number)
    judged = {verdict["query"] for verdict in run_dir.document["queries"]}
    whole = all(each.query.name in judged for each in work)
    run_dir.write_summary()
    _mark(run_dir, "finished" if whole else "prepared")
    write_reports(run_dir)
    return run_dir, exit_code(run_dir.document["queries"])


def _mark(run_dir: RunDir, state: str, error: BaseException | None = None) -> None:
    if state != "running":
        merge_system(run_dir.root)
    run_dir.document["state"] = state
    run_dir.document["ended"] = None if state == "running" else datetime.now(UTC).isoformat()
    if error is not None:
        run_dir.document["error"] = _said(error)
    run_dir.save()


def _said(error: BaseException) -> str:
    """The error as the command line will say it."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return error.line() if isinstance(error, EspbenchError | Interrupted) else repr(error)


def _password(settings: Settings) -> SecretStr | None:
    """The password that the steps cannot read for themselves."""
    if embedded_database(settings) is not None or settings.database.password_file:
        return None
    return parse_database_url(settings).password


def _remains(settings: Settings, run_dir: RunDir, query: Query) -> Remains:
    return Remains(
        topics=topics_file(settings, str(run_dir.document["run_id"]), query).exists(),
        sent=(run_dir.root / "logs" / f"{query.name}-sender.json").exists(),
        captured=(run_dir.capture(query) / "capture.json").exists(),
    )
