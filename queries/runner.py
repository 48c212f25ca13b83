"""The life of one query: start, become ready, go on until it is time to stop, leave nothing."""

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from espbench.errors import EspbenchError, Interrupted, ServiceError
from espbench.logs import LOGGER
from espbench.timestamps import now_ms
from queries.bounded import bounded
from queries.checkpoint import claimed
from queries.cluster import wait_for_executors, without_secrets
from queries.engine import Engine, is_local
from queries.job import Job
from queries.progress import Listener, ProgressLog, committed_offsets
from queries.rehearsal import rehearse
from queries.report import Report, python_versions, write_json
from queries.session import (
    STOP_TIMEOUT_S,
    Session,
    cause,
    spark_failures,
    spark_session,
)
from queries.stream import not_given, options_of, start_stream
from queries.watch import BrokerWatch

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.05
# What a killed JVM needs until its process is gone and its connections are reset.
DEATH_S = 3.0
# What the end of an interval takes at most.
INTERVAL_END_S = 5.0
WAITING = "Waiting for data to arrive"


def run_query(job: Job, report: Report) -> None:
    """Run until the job is finished; `report` is filled in, whatever happens.

    Raises `Interrupted` on SIGTERM or Ctrl-C, `ServiceError` where Spark or the broker fails.
    """
    report.started_ms = now_ms()
    try:
        with claimed(job.checkpoint, job.definition.query, job.topics, job.way.keeps) as lock:
            _run(job, report, lock)
    except (Interrupted, KeyboardInterrupt):
        report.reason = "interrupted"
        raise
    except EspbenchError as error:
        report.reason, report.error = "failed", error.line()
        raise
    except BaseException as error:
        report.reason, report.error = "failed", f"{type(error).__name__}: {error}"
        raise
    finally:
        report.stopped_ms = now_ms()


def _run(job: Job, report: Report, lock: int) -> None:
    _silence_py4j()
    log = ProgressLog(report.progress_file, committed_offsets(job.checkpoint))
    report.totals = log.totals
    name = job.definition.query.name
    LOGGER.info("%s: starting Spark (%s, %s)", name, job.plan.engine, job.plan.master)
    try:
        with spark_session(
            job.plan,
            job.places,
            job.jars,
            java_home=job.java_home,
            driver_memory=job.driver_memory,
            app_name=f"espbench {name}",
            given=job.spark_conf,
            held_open=[lock],
        ) as session:
            report.settings = without_secrets({each.name: each.value for each in session.settings})
            with _signals() as stop_asked, BrokerWatch(job.ask_broker) as watch:
                with _failures_explained(session, job):
                    _note_versions(session, report)
                    _wait_for_cluster(session, job, stop_asked)
                    if not report.totals.answered:  # else it takes over, and is waited for
                        report.rehearsal_s = rehearse(session, job, stop_asked)
                    query = _start(session, job, report, log)
                    _wait_until_ready(session, query, job, report, log, stop_asked)
                report.reason = _follow(session, job, log, watch, stop_asked)
                if report.reason == "interrupted" and job.plan.piped:
                    _answer_what_is_there(session, job, log)
                LOGGER.info("%s: %s, stopping", name, report.reason)
                bounded(query.stop, STOP_TIMEOUT_S)
            if report.reason == "interrupted":
                raise Interrupted(f"{name} was stopped before its work was done")
    finally:
        log.close()


def _wait_for_cluster(session: Session, job: Job, stop_asked: threading.Event) -> None:
    """Executors must be there before the query can be ready."""
    if is_local(job.plan.master):
        return
    partitions = sum(job.partitions.values())
    at_once = job.definition.tasks(partitions) if job.plan.engine is Engine.REAL_TIME else None
    wait_for_executors(session.spark, job.plan.master, at_once, stop_asked.is_set)


def _silence_py4j() -> None:
    """py4j logs every connection that a dying JVM resets; our own error says it once.

    Part of that it logs under its own name and part, with a traceback, under no name at all.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _start(session: Session, job: Job, report: Report, log: ProgressLog) -> "StreamingQuery":
    source, sink = options_of(job)
    report.source_options = not_given(source, job.kafka_options)
    report.sink_options = not_given(sink, job.kafka_options)
    listener: Any = Listener(log)
    session.spark.streams.addListener(listener)

    def note(error: EspbenchError) -> None:
        log.error = error

    return start_stream(session.spark, job, report.counters, note, job.plan.trigger())


def _wait_until_ready(
    session: Session,
    query: "StreamingQuery",
    job: Job,
    report: Report,
    log: ProgressLog,
    stop_asked: threading.Event,
) -> None:
    """Return once the query consumes, or has ended, or is to be stopped."""
    while not _is_consuming(session, query, job, log):
        if log.terminated.is_set() or session.death() or stop_asked.wait(POLL_S):
            return
    report.ready_ms = now_ms()
    log.begin_silence()
    LOGGER.info("%s: ready", job.definition.query.name)
    if job.ready_file:
        document = {"ready_ms": report.ready_ms, "driver_pid": session.driver.pid}
        write_json(job.ready_file, document)


def _is_consuming(session: Session, query: "StreamingQuery", job: Job, log: ProgressLog) -> bool:
    if log.totals.batches or job.plan.engine is Engine.AVAILABLE_NOW:
        return True
    if job.plan.engine is Engine.REAL_TIME:
        if job.plan.piped:
            # Its Python is there when the first interval is over.
            return False
        # Its first batch lasts until the first checkpoint; what counts is that all its tasks run.
        tracker = session.spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        running = sum(stage.numActiveTasks for stage in stages if stage is not None)
        return running >= job.definition.tasks(sum(job.partitions.values()))
    return bool(query.status["message"] == WAITING)


def _follow(
    session: Session,
    job: Job,
    log: ProgressLog,
    watch: BrokerWatch,
    stop_asked: threading.Event,
) -> str:
    """Wait for the first reason to stop; asks nothing of the JVM, so nothing can hang."""
    while not stop_asked.wait(POLL_S):
        if death := session.death():
            raise _driver_died(session, job, death)
        if watch.failure:
            raise watch.failure
        if log.terminated.is_set():
            if log.failure is None:
                return "finished"
            if log.error is not None:
                raise log.error
            raise _query_failed(log.failure, job)
        if reason := job.finish.reached(log):
            return reason
    return "interrupted"


def _answer_what_is_there(session: Session, job: Job, log: ProgressLog) -> None:
    """Records may wait for company until their interval's end; a second signal ends the wait."""
    if job.finish.ends is None:
        return
    try:
        goal = job.finish.ends()
    except ServiceError:
        return
    # The interval that goes on, and one that had not begun to read when the signal came.
    deadline = time.monotonic() + 2 * job.plan.trigger_ms / 1_000 + INTERVAL_END_S
    while not log.covers(goal) and time.monotonic() < deadline:
        if log.terminated.wait(POLL_S) or session.death():
            return


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """SIGTERM and Ctrl-C as an event: raised in the midst of a call, they would break py4j."""
    asked = threading.Event()

    def note(number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise Interrupted(f"stopped by {signal.Signals(number).name} for the second time")
        asked.set()

    saved = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)


@contextmanager
def _failures_explained(session: Session, job: Job) -> Iterator[None]:
    try:
        yield
    except spark_failures() as error:
        waiting = threading.Event()
        for _ in range(int(DEATH_S / POLL_S)):
            if death := session.death():
                raise _driver_died(session, job, death) from error
            waiting.wait(POLL_S)
        raise _query_failed(str(error), job) from error


def _driver_died(session: Session, job: Job, death: str) -> ServiceError:
    return ServiceError(
        f"the Spark driver (Java, pid {session.driver.pid}) {death}",
        f"its log is {job.places.log}; started again, the query goes on from its checkpoint",
    )


def _query_failed(text: str, job: Job) -> ServiceError:
    return ServiceError(f"Spark gave up the query: {cause(text)}", f"its log is {job.places.log}")


def _note_versions(session: Session, report: Report) -> None:
    jvm: Any = session.spark.sparkContext._jvm  # noqa: SLF001 - the only way to Java's properties
    report.versions = {
        **python_versions(),
        "spark": session.spark.version,
        "java": str(jvm.System.getProperty("java.version")),
    }
