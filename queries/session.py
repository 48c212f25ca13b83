"""The Spark session: its settings, each with the reason beside it, and the JVM's life."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from espbench.config import secrets_in
from espbench.errors import MissingExtra, ServiceError
from espbench.paths import JAVA_LOCALE, make_dir
from queries.bounded import bounded
from queries.cluster import driver_address
from queries.engine import Engine, Plan, is_local, local_cores
from queries.pipe import BUFFER_BYTES, RECORDS_AT_ONCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long Spark may take to stop by itself before its process is killed.
STOP_TIMEOUT_S = 15.0
LONGEST_CAUSE = 500
BARE_FILE_SYSTEM_JAR = "hadoop-bare-naked-local-fs"


@dataclass(frozen=True, slots=True)
class Setting:
    """One Spark setting that is not the default, and why."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Places:
    """Where Spark may write: all below `work`, which belongs to one query of one run."""

    work: Path
    log: Path

    @property
    def scratch(self) -> Path:
        """Temporary files; of no use once the session has ended."""
        return self.work / "scratch"


def spark_settings(
    plan: Plan,
    places: Places,
    jars: Sequence[Path],
    driver_memory: str,
    app_name: str,
    given: Mapping[str, str],
) -> tuple[Setting, ...]:
    """Every setting of the session, in the order in which it is explained in the documentation.

    `given` are the user's, which come last and so beat ours.
    """
    scratch = places.scratch
    java_options = [
        f'"-Djava.io.tmpdir={scratch}"',
        "-Duser.timezone=UTC",
        # The JVM's counters are a file that it maps; writing them back can stall every thread.
        "-XX:-UsePerfData",
    ]
    settings = [
        Setting("spark.app.name", app_name, "shown in Spark's log and UI"),
        Setting("spark.master", plan.master, "where tasks run"),
        Setting("spark.driver.memory", driver_memory, "in local mode everything runs in here"),
        Setting("spark.driver.extraJavaOptions", " ".join(java_options), "UTC; own scratch files"),
        Setting("spark.local.dir", str(scratch), "nothing outside the work directory"),
        Setting("spark.sql.warehouse.dir", str(scratch / "warehouse"), "likewise"),
        Setting("spark.sql.session.timeZone", "UTC", "the benchmark's only time zone"),
        Setting("spark.ui.enabled", "false", "costs memory, time and a port"),
        Setting("spark.ui.showConsoleProgress", "false", "our own lines say how far it is"),
        Setting("spark.log.level", "WARN", "Spark's chatter would hide what matters"),
        Setting(
            "spark.sql.streaming.numRecentProgressUpdates",
            "2",
            "progress is stored as it comes, not kept in memory",
        ),
        Setting(
            "spark.sql.streaming.stopTimeout",
            f"{STOP_TIMEOUT_S:.0f}s",
            "a stop that hangs is an error, not a hanging command",
        ),
        Setting("spark.locality.wait", "0s", "no task waits for a better place"),
        Setting("spark.sql.adaptive.enabled", "false", "streaming does without; spares a warning"),
    ]
    if plan.engine is Engine.REAL_TIME:
        settings.append(
            Setting(
                "spark.shuffle.streaming.networkBufferMaxWaitTimeMs",
                "5",
                "a record on its way to its aggregate waits so long for company, else 50 ms",
            )
        )
    if plan.piped:
        settings += _python_in_tasks(plan)
    class_path = os.pathsep.join(str(jar) for jar in jars)
    if is_local(plan.master):
        settings += [
            Setting("spark.driver.extraClassPath", class_path, "connector and drivers"),
            Setting("spark.driver.bindAddress", "127.0.0.1", "not reachable from outside"),
            Setting("spark.driver.host", "127.0.0.1", "likewise"),
            Setting(
                "spark.sql.shuffle.partitions",
                "1" if plan.engine is Engine.REAL_TIME else str(local_cores(plan.master) or 1),
                "200 tasks for a few records cost seconds; in real-time mode all run at once",
            ),
            *_bare_file_system(jars),
        ]
    else:
        settings += _cluster_settings(plan, jars, class_path)
    settings += [Setting(name, value, "as configured") for name, value in given.items()]
    return tuple(settings)


def _python_in_tasks(plan: Plan) -> list[Setting]:
    """Real-time mode with Python: records reach it in small batches, answers leave at once."""
    mode = "spark.sql.streaming.realTimeMode"
    return [
        Setting(f"{mode}.allowlistCheck", "false", "Python is not on Spark's list of operators"),
        Setting(f"{mode}.minBatchDuration", str(plan.trigger_ms), "the last records wait for it"),
        Setting(
            "spark.python.udf.pipelined.enabled",
            "true",
            "else answers are read only when no more records can be written",
        ),
        Setting(
            "spark.sql.execution.arrow.maxRecordsPerBatch",
            str(RECORDS_AT_ONCE),
            "a record waits for so many more at most",
        ),
        Setting(
            "spark.sql.execution.pandas.udf.buffer.size",
            str(BUFFER_BYTES),
            "records and answers do not wait for a full buffer of 64 KiB",
        ),
    ]


def _cluster_settings(plan: Plan, jars: Sequence[Path], class_path: str) -> list[Setting]:
    """What a cluster needs; our Python stays on the driver, so nothing but jars is shipped."""
    settings = [
        Setting("spark.jars", ",".join(str(jar) for jar in jars), "shipped to the executors"),
        Setting("spark.driver.extraClassPath", class_path, "the driver reads Kafka as well"),
        Setting(
            "spark.executor.extraJavaOptions",
            "-Duser.timezone=UTC -XX:-UsePerfData",
            "executors read the database's times, which are UTC, wherever they run",
        ),
    ]
    if plan.engine is Engine.REAL_TIME:
        settings.append(
            Setting("spark.sql.shuffle.partitions", "1", "in real-time mode all tasks run at once")
        )
    if address := driver_address(plan.master):
        reason = "the address that the cluster sees, and no other"
        settings.append(Setting("spark.driver.host", address, reason))
        settings.append(Setting("spark.driver.bindAddress", address, reason))
    return settings


def _bare_file_system(jars: Sequence[Path]) -> list[Setting]:
    if not any(jar.name.startswith(BARE_FILE_SYSTEM_JAR) for jar in jars):
        return []
    reason = "Hadoop's own local file system forks a process per checkpoint file (60-100 ms)"
    return [
        Setting(
            "spark.hadoop.fs.file.impl",
            "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
            reason,
        ),
        Setting(
            "spark.sql.streaming.checkpointFileManagerClass",
            "org.apache.spark.sql.execution.streaming.checkpointing."
            "FileSystemBasedCheckpointFileManager",
            "the default manager bypasses the setting above",
        ),
    ]


def source_options(bootstrap_servers: str, given: Mapping[str, str]) -> dict[str, str]:
    """Options of every Kafka source; `given` are the user's, in Kafka's own names."""
    return {
        **{f"kafka.{name}": value for name, value in given.items()},
        "kafka.bootstrap.servers": bootstrap_servers,
        # What was sent before the query was ready is answered too.
        "startingOffsets": "earliest",
        # Records that vanish before they are read must stop the query, not go unnoticed.
        "failOnDataLoss": "true",
        # The default of 500 ms keeps a reader in a fetch that began before the records came.
        "kafka.fetch.max.wait.ms": "10",
    }


def sink_options(bootstrap_servers: str, topic: str, given: Mapping[str, str]) -> dict[str, str]:
    """Options of the Kafka sink."""
    return {
        **{f"kafka.{name}": value for name, value in given.items()},
        "kafka.bootstrap.servers": bootstrap_servers,
        "topic": topic,
        # Durable: an answer counts once every in-sync replica has it.
        "kafka.acks": "all",
        # An answer is sent when it is there; waiting for company is latency.
        "kafka.linger.ms": "0",
        # What the broker takes it decides itself.
        "kafka.max.request.size": str(2**25),
    }


@dataclass(frozen=True, slots=True)
class Session:
    """A running session; `driver` is the JVM's process."""

    spark: "SparkSession"
    driver: "subprocess.Popen[bytes]"
    settings: tuple[Setting, ...]

    def collect_garbage(self) -> None:
        """Have the JVM collect now what it would else collect soon."""
        jvm: Any = self.spark.sparkContext._jvm  # noqa: SLF001 - the only way to Java
        jvm.System.gc()

    def death(self) -> str | None:
        """How the JVM ended, None while it lives."""
        code = self.driver.poll()
        if code is None:
            return None
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"


@contextmanager
def spark_session(
    plan: Plan,
    places: Places,
    jars: Sequence[Path],
    *,
    java_home: Path,
    driver_memory: str,
    app_name: str,
    given: Mapping[str, str],
    held_open: Sequence[int] = (),
) -> Iterator[Session]:
    """A session of its own JVM; when the block ends, however it ends, no process is left.

    `held_open` are file descriptors (locks) that the JVM is to share, so that they last as long
    as it does. Raises `ServiceError` where Spark does not start; the log says why.
    """
    try:
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - an extra, and heavy
        from pyspark.sql import SparkSession  # noqa: PLC0415 - likewise
    except ImportError as error:
        raise MissingExtra("pyspark", "spark") from error
    make_dir(places.scratch)
    make_dir(places.log.parent)
    settings = spark_settings(plan, places, jars, driver_memory, app_name, given)
    conf = SparkConf(loadDefaults=False).setAll([(each.name, each.value) for each in settings])
    # What is given here stands in the JVM's arguments, for everybody to see.
    arguments = SparkConf(loadDefaults=False).setAll(
        [(each.name, each.value) for each in settings if not secrets_in({each.name: each.value})]
    )
    before = _children()
    gateway: Any = None
    try:
        try:
            with _environment(plan, places, java_home):
                gateway = _launch(arguments, places, held_open)
                # Inside: here PySpark notes which Python the workers are to run.
                spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
        except spark_failures() as error:
            raise ServiceError(
                f"Spark did not start: {cause(str(error))}", f"its log is {places.log}"
            ) from error
        yield Session(spark, gateway.proc, settings)
    finally:
        _end(SparkContext, gateway, before)
        shutil.rmtree(places.scratch, ignore_errors=True)


def spark_failures() -> tuple[type[Exception], ...]:
    """What PySpark raises when Spark, or the way to it, fails."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra, and heavy

    return PySparkException, Py4JError, ConnectionError


def first_line(error: object) -> str:
    """The line of an error's text that says why: Spark appends whole stack traces."""
    first, *others = str(error).strip().splitlines() or [type(error).__name__]
    # These are the bridge's words; Java's follow.
    if first.startswith("An error occurred while calling") and others:
        return others[0].removeprefix(": ")
    return first


def cause(text: str) -> str:
    """What began it all, in a line, of an error's text with all its stack traces."""
    lines = [line.strip() for line in text.splitlines()]
    # A worker's traceback ends with what our Python raised.
    of_python = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit): ", line)]
    of_java = [line for line in lines if line.startswith("Caused by: ")]
    if "Traceback (most recent call last):" in text and of_python:
        return of_python[-1][:LONGEST_CAUSE]
    return (of_java[-1].removeprefix("Caused by: ") if of_java else first_line(text))[
        :LONGEST_CAUSE
    ]


def _launch(conf: Any, places: Places, held_open: Sequence[int]) -> Any:
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - an extra, and heavy

    launch: Any = launch_gateway
    with places.log.open("ab") as log:
        # The JVM speaks into its log alone; standard error is ours.
        return launch(
            conf, {"stdout": log, "stderr": log, "cwd": places.work, "pass_fds": tuple(held_open)}
        )


@contextmanager
def _environment(plan: Plan, places: Places, java_home: Path) -> Iterator[None]:
    """The variables under which the JVM starts; put back afterwards."""
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 - an extra

    # Another Spark on this machine, or a shell of one, must not get mixed up with ours.
    foreign = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")
    saved = dict(os.environ)
    for name in (*foreign, "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE", "SPARK_TESTING"):
        os.environ.pop(name, None)
    os.environ.update(
        SPARK_HOME=_find_spark_home(),
        JAVA_HOME=str(java_home),
        LC_ALL=JAVA_LOCALE,
        # Workers must run the Python that has the packages, whatever the PATH says.
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_DRIVER_PYTHON=sys.executable,
    )
    if is_local(plan.master):
        os.environ["SPARK_CONF_DIR"] = str(make_dir(places.scratch / "conf"))
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def _end(context_class: Any, gateway: Any, before: set[psutil.Process]) -> None:
    """Stop Spark, then make sure of every process that it started."""
    started = _children() - before
    context = context_class._active_spark_context  # noqa: SLF001 - no public way to ask
    if context is not None and gateway is not None and gateway.proc.poll() is None:
        bounded(context.stop, STOP_TIMEOUT_S)
    if gateway is not None:
        with suppress(Exception):  # the JVM may be gone; there is nothing left to save
            gateway.shutdown()
        with suppress(OSError):
            gateway.proc.stdin.close()  # on which the JVM ends by itself
        with suppress(subprocess.TimeoutExpired):
            gateway.proc.wait(timeout=5)
    context_class._gateway = context_class._jvm = None  # noqa: SLF001 - they point at a dead JVM
    context_class._active_spark_context = None  # noqa: SLF001 - likewise
    for process in started:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(list(started), timeout=5)
    if gateway is not None:
        gateway.proc.wait(timeout=5)
