"""The rehearsal: before a query is ready, it runs on topics of its own with made-up records.

A JVM compiles what runs often while it runs, and on few cores that costs the first records seconds.
The same plan, the same Kafka clients and the same checkpoints are used here first, so that the
first real record finds them compiled. Nothing of it stays: topics and checkpoints are removed, and
its production times have keys that no row has.
"""

import random
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from espbench.errors import EspbenchError
from espbench.kafka import client
from espbench.kafka.made import create_topics, delete_topics
from espbench.kafka.security import login
from espbench.logs import LOGGER
from queries.bounded import bounded
from queries.definition import UPDATES
from queries.engine import Engine
from queries.job import Job
from queries.session import STOP_TIMEOUT_S, Session, first_line, spark_failures
from queries.source import PRODUCTION_TIMES, SENSOR_COLUMNS
from queries.stream import start_stream

if TYPE_CHECKING:
    from espbench.kafka.admin import KafkaAdmin
    from espbench.kafka.registry import TopicRegistry

RATE_PER_S = 2_000
TICK_S = 0.01
POLL_S = 0.05
# As fast as possible: many batches make the planning of batches fast.
MICRO_BATCHES: Mapping[str, str | bool] = {"processingTime": "0 seconds"}


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How long, and what the topics for it are made with; `run` names them in the registry."""

    seconds: float
    admin: "KafkaAdmin"
    registry: "TopicRegistry"
    run: str
    replication_factor: int


def rehearse(session: Session, job: Job, stop_asked: threading.Event) -> float:
    """Run the job's query on records made up for it; returns the seconds that it took.

    What goes wrong here is said and is not the end: the query itself will tell.
    """
    rehearsal = job.rehearsal
    if rehearsal is None or rehearsal.seconds <= 0:
        return 0.0
    begun = time.monotonic()
    topics = {role: f"{name}-rehearsal" for role, name in job.topics.items()}
    partitions = {topics[role]: job.partitions[name] for role, name in _sources(job).items()}
    try:
        with ExitStack() as cleanup:
            cleanup.enter_context(_topics(rehearsal, topics, max(partitions.values())))
            cleanup.enter_context(_feed(job, topics, partitions))
            # Where the query's own is: executors may have to reach it.
            place = job.checkpoint / "rehearsal"
            shutil.rmtree(place, ignore_errors=True)  # of one that was killed
            cleanup.callback(shutil.rmtree, place, ignore_errors=True)
            for name, trigger in _stages(job):
                stage = replace(
                    job,
                    topics=topics,
                    partitions=partitions,
                    checkpoint=place / name,
                )
                seconds = rehearsal.seconds / len(_stages(job))
                _perform(session, stage, trigger, seconds, stop_asked)
            bounded(session.collect_garbage, STOP_TIMEOUT_S)
    except EspbenchError as error:
        LOGGER.warning("no rehearsal: %s", error.cause)
    except spark_failures() as error:
        LOGGER.warning("the rehearsal was cut short: %s", first_line(error))
    return time.monotonic() - begun


def _sources(job: Job) -> dict[str, str]:
    return {role: name for role, name in job.topics.items() if name in job.partitions}


def _stages(job: Job) -> list[tuple[str, dict[str, Any]]]:
    """Real-time mode rarely plans; what it plans with is rehearsed in micro-batches first.

    Its shuffle is left out: after it had been stopped in its midst, the query's own aggregation
    was seen to wait for a minute and more.
    """
    last = (str(job.plan.engine), dict(job.plan.trigger()))
    if job.plan.engine is not Engine.REAL_TIME:
        return [last]
    first = (str(Engine.MICRO_BATCH), dict(MICRO_BATCHES))
    return [first] if job.way.emits == UPDATES else [first, last]


def _perform(
    session: Session,
    job: Job,
    trigger: Mapping[str, Any],
    seconds: float,
    stop_asked: threading.Event,
) -> None:
    failures: list[EspbenchError] = []
    query = start_stream(session.spark, job, {}, failures.append, trigger)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and session.death() is None:
        if stop_asked.wait(POLL_S) or not query.isActive:
            break
    exception = query.exception()
    bounded(query.stop, STOP_TIMEOUT_S)
    _wait_for_tasks(session)
    if failures:
        raise failures[0]
    if exception is not None:
        LOGGER.warning("the rehearsal was cut short: %s", first_line(exception))


def _wait_for_tasks(session: Session) -> None:
    """Return once nothing runs any more: the query that follows needs every core."""
    tracker = session.spark.sparkContext.statusTracker()
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while tracker.getActiveStageIds() and session.death() is None:
        if time.monotonic() > deadline:
            LOGGER.warning("tasks of the rehearsal still run after %.0f s", STOP_TIMEOUT_S)
            return
        time.sleep(POLL_S)


@contextmanager
def _topics(rehearsal: Rehearsal, topics: Mapping[str, str], partitions: int) -> Iterator[None]:
    """Topics that last as long as the block; those of a rehearsal that was killed go first."""
    admin, registry, run = rehearsal.admin, rehearsal.registry, rehearsal.run
    if registry.read(run) is not None:
        delete_topics(admin, registry, run)
    create_topics(
        admin,
        registry,
        run,
        topics.values(),
        partitions=partitions,
        replication_factor=rehearsal.replication_factor,
    )
    try:
        yield
    finally:
        delete_topics(admin, registry, run)


@contextmanager
def _feed(job: Job, topics: Mapping[str, str], partitions: Mapping[str, int]) -> Iterator[None]:
    """Records into every source, at an even rate, until the block ends."""
    ended = threading.Event()
    library = client.library()
    producer = library.Producer(
        {
            **login(job.bootstrap_servers),
            "bootstrap.servers": str(job.bootstrap_servers),
            "linger.ms": 0,
        },
        logger=client.logger(),
    )

    def feed() -> None:
        begun, sent = time.monotonic(), 0
        while not ended.wait(TICK_S):
            due = int((time.monotonic() - begun) * RATE_PER_S)
            for number in range(sent, due):
                for stream in job.definition.query.streams:
                    topic = topics[f"source-{stream}"]
                    value = record(stream, number)
                    producer.produce(topic, value, partition=number % partitions[topic])
            sent = due
            producer.poll(0)

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        producer.purge()
        producer.flush(1)


def record(stream: int, number: int) -> bytes:
    """A made-up record of a stream: every query has something to answer, none something to keep."""
    if stream == PRODUCTION_TIMES:
        return b"%d;0;0\t%d\t0\t%d" % (number, number // 2, number % 2)
    chance = random.Random(number)  # noqa: S311 - made-up values, the same every time
    columns = ["2012-02-22T16:46:28.9670320+00:00", str(number)]
    columns += [str(round(chance.gauss(mean, 600))) for mean in (13_500, 14_500, 8_300)]
    columns += ["0"] * (SENSOR_COLUMNS - len(columns) - 1) + [str(stream)]
    line = "\t".join(columns)
    return f"{number};0;{line}".encode()
