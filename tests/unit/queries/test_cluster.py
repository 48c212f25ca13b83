"""Masters, addresses and checkpoints, before any Spark is started."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from espbench.errors import ServiceError, UsageError
from queries.cluster import (
    check_checkpoint,
    check_master,
    driver_address,
    on_this_machine,
    require_master,
    standalone_masters,
    wait_for_executors,
    without_secrets,
)
from queries.engine import Engine, choose

MASTERS = [
    "local",
    "local[2]",
    "local[*]",
    "local[4, 2]",
    "local-cluster[2,1,1024]",
    "spark://host:7077",
    "spark://a:7077,b:7077",
    "spark://[::1]:7077",
    "k8s://https://host:6443",
]


@pytest.mark.parametrize("master", MASTERS)
def test_masters(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master", ["", "host:7077", "spark://host", "local[0]", "local[]", "spark://a:1,", "mesos://a"]
)
def test_what_is_no_master(master: str) -> None:
    with pytest.raises(UsageError, match="no Spark master"):
        check_master(master)


def test_yarn_must_be_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="where yarn is"):
        check_master("yarn")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    check_master("yarn")


def test_masters_of_a_standalone_cluster() -> None:
    assert standalone_masters("spark://a:1,[::1]:2") == [("a", 1), ("::1", 2)]
    assert standalone_masters("yarn") == []


def test_a_master_that_does_not_answer_is_told_of_at_once() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(ServiceError, match="no Spark master answers"):
            require_master(f"spark://{nobody}")
        with socket.create_server(("127.0.0.1", 0)) as server:
            require_master(f"spark://{nobody},127.0.0.1:{server.getsockname()[1]}")


def test_what_runs_here_shares_its_files() -> None:
    assert on_this_machine("local-cluster[2,1,1024]")
    assert on_this_machine("spark://127.0.0.1:7077")
    assert on_this_machine("spark://localhost:7077,[::1]:7078")
    assert not on_this_machine("spark://127.0.0.1:7077,host:7077")
    assert not on_this_machine("yarn")


def test_a_cluster_here_sees_the_driver_on_loopback_alone() -> None:
    assert driver_address("spark://localhost:7077") == "127.0.0.1"
    assert driver_address("yarn") is None


@pytest.mark.parametrize("given", ["hdfs://nn/a", "s3a://bucket/a", "file:/a"])
def test_a_checkpoint_is_a_directory(given: str) -> None:
    with pytest.raises(UsageError, match="no directory"):
        check_checkpoint(Path(given))
    check_checkpoint(Path("/mnt/a:b"))
    check_checkpoint(Path("relative"))


def test_secrets_are_not_shown() -> None:
    assert without_secrets({"spark.hadoop.fs.s3a.secret.key": "x", "spark.app.name": "y"}) == {
        "spark.hadoop.fs.s3a.secret.key": "(hidden)",
        "spark.app.name": "y",
    }


def test_state_needs_a_place_that_executors_reach() -> None:
    able = (Engine.REAL_TIME, Engine.MICRO_BATCH)
    plan = choose("auto", able, query="q", master="yarn", tasks=2, homeless=(Engine.REAL_TIME,))
    assert plan.engine is Engine.MICRO_BATCH
    with pytest.raises(UsageError, match="reach no directory"):
        choose("real-time", able, query="q", master="yarn", tasks=2, homeless=(Engine.REAL_TIME,))


def spark(executors: int, cores: int, **settings: str) -> Any:
    """Only what is asked of a session."""
    context = SimpleNamespace(
        getExecutorMemoryStatus=lambda: SimpleNamespace(size=lambda: executors + 1),
        schedulerBackend=lambda: SimpleNamespace(totalCoreCount=lambda: cores),
    )
    return SimpleNamespace(
        conf={name.replace("_", "."): value for name, value in settings.items()},
        sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context)),
    )


@pytest.mark.parametrize(
    ("executors", "cores", "tasks", "cause"),
    [(0, 0, None, "gave no executor"), (1, 2, 3, "3 tasks at once, m gave 2 cores")],
)
def test_a_cluster_that_gives_too_little_is_not_waited_for_for_ever(
    executors: int, cores: int, tasks: int | None, cause: str
) -> None:
    with pytest.raises(ServiceError, match=cause):
        wait_for_executors(spark(executors, cores), "m", tasks, lambda: False, patience_s=0)


def test_what_is_enough_is_not_waited_for() -> None:
    def never() -> bool:
        return False

    wait_for_executors(spark(1, 1), "m", None, never, patience_s=0)
    wait_for_executors(spark(2, 3), "m", 3, never, patience_s=0)
    wait_for_executors(spark(0, 0), "m", 3, lambda: True, patience_s=0)
    dynamic = spark(0, 0, spark_dynamicAllocation_enabled="true")
    wait_for_executors(dynamic, "m", None, never, patience_s=0)
