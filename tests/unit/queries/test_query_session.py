from pathlib import Path

import pytest

from queries.engine import Engine, Plan
from queries.session import Places, Setting, cause, first_line, spark_settings

PLACES = Places(work=Path("/work dir/q"), log=Path("/logs/q.log"))
JARS = [Path("/jars/spark-sql-kafka.jar"), Path("/jars/hadoop-bare-naked-local-fs-0.1.0.jar")]


def settings(master: str = "local[3]", jars: list[Path] | None = None) -> dict[str, str]:
    plan = Plan(Engine.MICRO_BATCH, master, 0)
    return {
        each.name: each.value
        for each in spark_settings(
            plan, PLACES, JARS if jars is None else jars, "2g", "espbench", {}
        )
    }


def test_every_setting_says_why_and_stands_once() -> None:
    plan = Plan(Engine.MICRO_BATCH, "local[3]", 0)
    found: tuple[Setting, ...] = spark_settings(plan, PLACES, JARS, "2g", "espbench", {})
    assert all(each.reason for each in found)
    assert len({each.name for each in found}) == len(found)


def test_nothing_listens_beyond_this_machine() -> None:
    found = settings()
    assert found["spark.driver.bindAddress"] == found["spark.driver.host"] == "127.0.0.1"
    assert found["spark.ui.enabled"] == "false"


def test_nothing_is_written_beyond_the_work_directory() -> None:
    found = settings()
    for name in ("spark.local.dir", "spark.sql.warehouse.dir"):
        assert Path(found[name]).is_relative_to(PLACES.work)
    assert '"-Djava.io.tmpdir=/work dir/q/scratch"' in found["spark.driver.extraJavaOptions"]


def test_a_local_session_has_few_shuffle_partitions_and_a_fast_file_system() -> None:
    found = settings()
    assert found["spark.sql.shuffle.partitions"] == "3"
    assert found["spark.hadoop.fs.file.impl"].endswith("BareLocalFileSystem")
    assert "spark.hadoop.fs.file.impl" not in settings(jars=JARS[:1])


def test_a_cluster_gets_the_jars_and_utc() -> None:
    found = settings("yarn")
    assert found["spark.jars"] == ",".join(map(str, JARS))
    assert "-Duser.timezone=UTC" in found["spark.executor.extraJavaOptions"]
    assert "spark.driver.bindAddress" not in found
    assert "spark.hadoop.fs.file.impl" not in found


def test_a_cluster_on_this_machine_sees_the_driver_on_loopback() -> None:
    found = settings("spark://127.0.0.1:7077")
    assert found["spark.driver.bindAddress"] == found["spark.driver.host"] == "127.0.0.1"


def test_in_real_time_mode_a_cluster_needs_few_tasks_at_once() -> None:
    plan = Plan(Engine.REAL_TIME, "yarn", 5_000)
    found = {each.name: each.value for each in spark_settings(plan, PLACES, JARS, "2g", "e", {})}
    assert found["spark.sql.shuffle.partitions"] == "1"


def test_python_in_tasks_waits_for_no_company() -> None:
    plan = Plan(Engine.REAL_TIME, "local[2]", 3_000, piped=True)
    found = {each.name: each.value for each in spark_settings(plan, PLACES, JARS, "2g", "e", {})}
    assert found["spark.python.udf.pipelined.enabled"] == "true"
    assert found["spark.sql.streaming.realTimeMode.minBatchDuration"] == "3000"
    assert "spark.python.udf.pipelined.enabled" not in settings()


def test_what_began_it_all_is_named() -> None:
    of_python = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted: Lost task
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/queries/stamping.py", line 59, in stamp
    raise PassingError(explained.cause, explained.remedy) from error
queries.stamping.PassingError: the database went away

\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:581)
Caused by: java.io.EOFException"""
    assert cause(of_python) == "queries.stamping.PassingError: the database went away"
    of_java = "[STREAM_FAILED] it ended\n\tat x\nCaused by: a.B: first\nCaused by: c.D: disk full"
    assert cause(of_java) == "c.D: disk full"
    assert cause("[STREAM_FAILED] it ended\n\tat x") == "[STREAM_FAILED] it ended"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("it broke\nat a.b.C", "it broke"),
        (
            "An error occurred while calling None.org.X.\n: java.lang.Error: no memory\n\tat x",
            "java.lang.Error: no memory",
        ),
        ("An error occurred while calling o7.x", "An error occurred while calling o7.x"),
        ("", "RuntimeError"),
    ],
)
def test_the_line_that_says_why(text: str, line: str) -> None:
    assert first_line(RuntimeError(text)) == line
