"""The whole benchmark: the steps in their order, each an `espbench` command of its own.

    services up → datagen → load → per query: topics, query, send, drain, capture, validate

A run watches the services and the query while it waits for anything else, so that a death is
named when it happens and not as the time-out of some other part.
"""

import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from espbench import services
from espbench.config import PREFIX, Settings
from espbench.errors import EspbenchError, ExitCode, Interrupted, ServiceError, worst
from espbench.logs import LOGGER
from espbench.names import Query, run_of
from espbench.paths import StateDir, locked, make_dir, write_atomically
from espbench.runs import children
from espbench.runs.children import Child, StepFailedError
from espbench.runs.machine import machine, versions
from espbench.runs.store import RunDir
from espbench.services.endpoints import embedded_database, parse_database_url
from espbench.services.process import ProcessRecord, last_lines
from espbench.services.service import Service
from espbench.timestamps import now_ms

READY_DEADLINE_S = 180.0
DRAIN_DEADLINE_S = 120.0
# How far ahead the sender's start is announced where the downtimes depend on it: a query is
# usually ready by then.
ANNOUNCED_S = 25


@dataclass(slots=True)
class Run:
    """One run in progress: its settings, its directory and what must stay alive."""

    settings: Settings
    run_dir: RunDir
    quiet: bool
    watched: list[tuple[Service, ProcessRecord]] = field(default_factory=list)
    query_child: Child | None = None
    where: str = ""

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.run_dir.document["run_id"])

    def watch(self) -> None:
        """Raise where a service or the query has died."""
        for service, record in self.watched:
            if record.process() is None:
                last = " / ".join(last_lines(service.log, 1))
                raise ServiceError(
                    f"{service.name} (pid {record.pid}) ended during {self.where}"
                    + (f"; its last words: {last}" if last else ""),
                    f"see its log {service.log}",
                )
        if self.query_child is not None:
            self.query_child.check()

    def start(self, step: str, arguments: list[str], query: Query | None) -> Child:
        """Start a command of this run, with the run's configuration."""
        name = f"{query.name}-{step}" if query else step
        return children.start(
            step,
            [*arguments, "--config", str(self.run_dir.root / "config.yml")],
            log=self.run_dir.log(name),
            environment=self._environment(),
            quiet=self.quiet,
        )

    def call(self, step: str, arguments: list[str], query: Query | None = None) -> Child:
        """Run a command to its end and record how long it took."""
        begin, started = time.monotonic(), datetime.now(UTC)
        self.where = f"{step} of {query.name}" if query else step
        LOGGER.info("%s", f"{query.name}: {step}" if query else step)
        child = self.start(step, arguments, query)
        try:
            child.wait(self.watch)
            child.check()
        finally:
            child.stop()
        self.run_dir.note_step(step, query, started, time.monotonic() - begin)
        return child

    def _environment(self) -> dict[str, str]:
        # The configuration file holds all that counts; secrets alone travel by the environment.
        own = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
        if embedded_database(self.settings) is None:
            password = parse_database_url(self.settings).password
            if password is not None:
                own[f"{PREFIX}DATABASE__PASSWORD"] = password.get_secret_value()
        return own


def run_benchmark(
    settings: Settings, queries: tuple[Query, ...], run_id: str, *, quiet: bool
) -> tuple[RunDir, ExitCode]:
    """Run the queries one after another; the run's directory and the exit code of its verdicts."""
    state = make_dir(StateDir.of(settings).root)
    with locked(state / "run.lock", f"another run is going on in {state}"):
        return _run_all(settings, queries, run_id, quiet=quiet)


def _run_all(
    settings: Settings, queries: tuple[Query, ...], run_id: str, *, quiet: bool
) -> tuple[RunDir, ExitCode]:
    document: dict[str, Any] = {
        "state": "running",
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
    run = Run(settings, run_dir, quiet)
    try:
        with ExitStack() as cleanup:
            _write_config(run)
            _start_services(run, cleanup)
            data = run.call("datagen", ["datagen", "--json"]).document()
            run.call("load", ["load", "--json"])
            for query in queries:
                verdict = _run_query(run, query, Path(data["directory"]))
                run_dir.document["queries"].append(verdict)
                run_dir.save()
                run_dir.write_summary()
    except BaseException as error:
        _mark_end(run_dir, _state_of(error), error)
        raise
    _mark_end(run_dir, "finished")
    return run_dir, exit_code(run_dir.document["queries"])


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


def _write_config(run: Run) -> None:
    config = run.settings.public()
    config["state_dir"] = str(run.settings.state_dir.expanduser().resolve())
    config["results_dir"] = str(run.settings.results_dir.expanduser().resolve())
    del config["database"]["password"]
    write_atomically(run.run_dir.root / "config.yml", yaml.safe_dump(config, sort_keys=False))


def _start_services(run: Run, cleanup: ExitStack) -> None:
    broker = None if run.settings.kafka.bootstrap_servers else "kafka"
    wanted = [name for name in (broker, embedded_database(run.settings)) if name]
    for service in services.select(run.settings, wanted) if wanted else []:
        # Registered before the start: an interruption during it must end the server as well.
        if service.record() is None:
            cleanup.callback(_stop_service, service)
        fresh = service.start()
        status, record = service.status(), service.record()
        LOGGER.info("%s %s: %s", service.name, "started" if fresh else "is running", status.address)
        if record is None:
            raise ServiceError(f"{service.name} ended at once", f"see its log {service.log}")
        run.watched.append((service, record))
        entry = {"name": service.name, "address": status.address, "settings": status.settings}
        run.run_dir.document["services"].append(entry)
    run.run_dir.save()


def _stop_service(service: Service) -> None:
    if service.stop():
        LOGGER.info("%s stopped", service.name)


def _run_query(run: Run, query: Query, data: Path) -> dict[str, Any]:
    with ExitStack() as cleanup:
        return _judged(run, query, data, cleanup)


def _judged(run: Run, query: Query, data: Path, cleanup: ExitStack) -> dict[str, Any]:
    topic_run = run_of(run.run_id, query)
    names = ["--run", topic_run]
    ready, sent, answered = (
        run.run_dir.root / "logs" / f"{query.name}-{what}.json"
        for what in ("ready", "sender", "query")
    )
    run.call("topics", ["topics", "create", *names, "--queries", query.name, "--json"], query)
    cleanup.callback(_delete_topics, run, query, names)
    # Checkpoints serve a query that is started again; this one has ended for good.
    checkpoints = StateDir.of(run.settings).root / "queries" / topic_run
    cleanup.callback(shutil.rmtree, checkpoints, ignore_errors=True)
    start_ms = None
    if query.tables:
        start_ms = now_ms() + ANNOUNCED_S * 1_000
        _reset(run, query, start_ms)
    arguments = ["query", query.name, *names, "--ready-file", str(ready), "--until", str(sent)]
    child = run.start("query", [*arguments, "--out", str(answered), "--json"], query)
    run.query_child = child
    cleanup.callback(_end_query, run, child)
    _wait_for_file(run, ready, query)
    streams = [f"--stream={stream}={_stream_file(data, stream)}" for stream in query.streams]
    if query.lookup_table:
        if start_ms is None or now_ms() > start_ms - 1_000:
            # The query took longer than announced; it must have seen the table before the start.
            start_ms = now_ms() + round(1_000 * run.settings.spark.freshness) + 3_000
            _reset(run, query, start_ms)
        streams += ["--start-ms", str(start_ms)]
    run.call("send", ["send", *names, *streams, "--out", str(sent), "--json"], query)
    _drain(run, child, query)
    arguments = ["capture", *names, "--query", query.name, "--sender-report", str(sent), "--json"]
    run.call("capture", [*arguments, "--out", str(run.run_dir.capture(query))], query)
    arguments = ["validate", str(run.run_dir.capture(query)), "--out", str(run.run_dir.root)]
    verdict = run.call("validate", [*arguments, "--json"], query).document()
    if not run.settings.keep_captures:
        shutil.rmtree(run.run_dir.capture(query))
    return verdict


def _reset(run: Run, query: Query, start_ms: int) -> None:
    run.call("reset", ["load", "--reset", "--start-ms", str(start_ms), "--json"], query)


def _end_query(run: Run, child: Child) -> None:
    run.query_child = None
    child.stop()


def _delete_topics(run: Run, query: Query, names: list[str]) -> None:
    """Delete what the run made, if the broker still lives; a failed run is already explained."""
    if all(record.process() for _, record in run.watched):
        with suppress(StepFailedError):
            run.call("topics-delete", ["topics", "delete", *names, "--json"], query)


def _wait_for_file(run: Run, ready: Path, query: Query) -> None:
    run.where = f"the start of {query.name}"
    LOGGER.info("%s: query is starting", query.name)
    _wait(run, ready.exists, READY_DEADLINE_S, f"{query.name} was not ready")


def _drain(run: Run, child: Child, query: Query) -> None:
    """Wait until the query has answered for everything that was sent, and ended by itself."""
    run.where = f"the drain of {query.name}"
    begin, started = time.monotonic(), datetime.now(UTC)
    drained = child.wait(run.watch, DRAIN_DEADLINE_S)
    if not drained:
        LOGGER.warning(
            "%s had not answered for all input %.0f s after the sender's end; stopping it",
            query.name,
            DRAIN_DEADLINE_S,
        )
    else:
        child.check()
    child.stop()
    run.run_dir.note_step("drain", query, started, time.monotonic() - begin)


def _wait(run: Run, done: Callable[[], bool], deadline_s: float, failure: str) -> None:
    deadline = time.monotonic() + deadline_s
    while not done():
        run.watch()
        if time.monotonic() > deadline:
            raise ServiceError(f"{failure} within {deadline_s:.0f} s", f"see {run.run_dir.root}")
        time.sleep(0.1)


def _stream_file(data: Path, stream: int) -> Path:
    return data / ("production_times.csv" if stream == 3 else f"sensor-{stream}.csv")


def _state_of(error: BaseException) -> str:
    return "interrupted" if isinstance(error, (KeyboardInterrupt, Interrupted)) else "failed"


def _mark_end(run_dir: RunDir, state: str, error: BaseException | None = None) -> None:
    run_dir.document["state"] = state
    run_dir.document["ended"] = datetime.now(UTC).isoformat()
    if error is not None:
        text = error.line() if isinstance(error, EspbenchError) else repr(error)
        run_dir.document["error"] = text
    run_dir.save()
