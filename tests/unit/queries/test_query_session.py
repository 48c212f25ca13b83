from pathlib import Path

from queries.engine import Engine, Plan
from queries.session import Places, Setting, spark_settings

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
