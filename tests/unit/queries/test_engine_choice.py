import pytest

from espbench.errors import UsageError
from queries.engine import Engine, Plan, choose, is_local, local_cores

ALL = (Engine.REAL_TIME, Engine.MICRO_BATCH, Engine.AVAILABLE_NOW)


def chosen(
    asked: str = "auto",
    able: tuple[Engine, ...] = ALL,
    master: str = "local[2]",
    partitions: int = 1,
    trigger_ms: int | None = None,
    piped: tuple[Engine, ...] = (),
) -> Plan:
    return choose(
        asked,
        able,
        query="q",
        master=master,
        tasks=partitions,
        trigger_ms=trigger_ms,
        piped=piped,
    )


def test_auto_takes_the_fastest_mode() -> None:
    assert chosen().engine is Engine.REAL_TIME
    assert chosen(able=(Engine.MICRO_BATCH,)).engine is Engine.MICRO_BATCH


def test_auto_leaves_out_a_mode_that_the_master_cannot_run() -> None:
    assert chosen(partitions=2).engine is Engine.REAL_TIME
    assert chosen(partitions=3).engine is Engine.MICRO_BATCH


def test_auto_heeds_a_short_interval() -> None:
    assert chosen(trigger_ms=100) == Plan(Engine.MICRO_BATCH, "local[2]", 100)


def test_any_number_of_threads_grows_with_the_partitions() -> None:
    plan = chosen(master="local[*]", partitions=500)
    assert plan.engine is Engine.REAL_TIME
    assert plan.master == "local[500]"


def test_a_cluster_is_left_as_it_is() -> None:
    assert chosen(master="spark://host:7077", partitions=9).master == "spark://host:7077"


def test_python_in_tasks_has_shorter_intervals_and_stays_on_the_drivers_machine() -> None:
    piped = (Engine.REAL_TIME,)
    assert chosen(piped=piped) == Plan(Engine.REAL_TIME, "local[2]", 3_000, piped=True)
    assert chosen(piped=piped, trigger_ms=1_000).trigger_ms == 1_000
    assert not chosen("micro-batch", piped=piped).piped
    assert chosen(piped=piped, master="spark://host:7077").engine is Engine.MICRO_BATCH
    with pytest.raises(UsageError, match="runs on the driver's machine only"):
        chosen("real-time", piped=piped, master="spark://host:7077")
    with pytest.raises(UsageError, match="too short"):
        chosen("real-time", piped=piped, trigger_ms=999)


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"asked": "fast"}, "no engine 'fast'"),
        ({"asked": "real-time", "able": (Engine.MICRO_BATCH,)}, "cannot run in the mode"),
        ({"asked": "real-time", "partitions": 3}, "3 tasks at once"),
        ({"asked": "real-time", "trigger_ms": 4_999}, "too short"),
        ({"asked": "available-now", "trigger_ms": 1}, "no interval"),
    ],
)
def test_what_spark_cannot_run_is_refused(options: dict[str, object], cause: str) -> None:
    with pytest.raises(UsageError, match=cause):
        chosen(**options)  # type: ignore[arg-type]


def test_triggers_and_output_modes() -> None:
    assert chosen("micro-batch").trigger() == {"processingTime": "0 milliseconds"}
    assert chosen("real-time").trigger() == {"realTime": "10000 milliseconds"}
    assert chosen("available-now").trigger() == {"availableNow": True}
    assert chosen("micro-batch").output_mode == "append"
    assert chosen("real-time").output_mode == "update"


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[4]", 4), ("local[4, 2]", 4), ("local[*]", None), ("yarn", None)],
)
def test_cores_of_a_master(master: str, cores: int | None) -> None:
    assert local_cores(master) == cores


def test_what_is_local() -> None:
    assert is_local("local[*]")
    assert not is_local("local-cluster[2,1,1024]")


@pytest.mark.parametrize(
    ("freshness_s", "interval_ms"), [(None, 10_000), (60.0, 10_000), (10.0, 8_000), (7.0, 5_000)]
)
def test_real_time_checkpoints_as_rarely_as_freshness_allows(
    freshness_s: float | None, interval_ms: int
) -> None:
    plan = choose(
        "real-time",
        Engine.fastest_first(),
        query="q",
        master="local[2]",
        tasks=1,
        freshness_s=freshness_s,
    )
    assert plan.trigger_ms == interval_ms
