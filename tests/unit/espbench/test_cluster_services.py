"""Embedded servers that are several: brokers that know each other, a Spark master and workers."""

import base64
import subprocess
from pathlib import Path

import pytest

from espbench.config import Settings, load_settings
from espbench.errors import ConfigError, ServiceError
from espbench.services import select
from espbench.services.kafka import Kafka
from espbench.services.service import free_ports
from espbench.services.spark import SparkMaster, SparkWorker

VOTERS = "1@10.0.0.1:9093,2@10.0.0.2:9093,3@10.0.0.3:9095"


def member(directory: Path, node: int, voters: str = VOTERS) -> Kafka:
    options = {"state_dir": directory, "kafka.node_id": node, "kafka.voters": voters}
    return Kafka(load_settings(None, options))


def properties(broker: Kafka) -> dict[str, str]:
    return dict(line.split("=", 1) for line in broker._properties([1, 2]).splitlines())


def test_members_know_each_other_and_keep_copies(tmp_path: Path) -> None:
    found = properties(member(tmp_path, 3))
    assert found["node.id"] == "3"
    assert found["controller.quorum.voters"] == VOTERS
    assert found["transaction.state.log.replication.factor"] == "3"
    assert found["transaction.state.log.min.isr"] == "2"
    alone = properties(Kafka(load_settings(None, {"state_dir": tmp_path})))
    assert alone["controller.quorum.voters"] == "1@127.0.0.1:2"
    assert alone["transaction.state.log.replication.factor"] == "1"


def test_a_controller_listens_where_the_others_expect_it(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    assert member(tmp_path, 1, f"1@127.0.0.1:{port},2@10.0.0.2:9093").choose_ports()[1] == port


def test_a_broker_that_is_no_member_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"kafka\.node_id = 4 is not among"):
        member(tmp_path, 4).choose_ports()


@pytest.mark.parametrize("voters", ["1@10.0.0.1", "10.0.0.1:9093", "", "1@a:1,"])
def test_voters_are_checked(voters: str) -> None:
    with pytest.raises(ConfigError, match=r"kafka\.voters"):
        load_settings(None, {"kafka.voters": voters})


def test_data_of_another_cluster_is_refused(tmp_path: Path) -> None:
    broker = member(tmp_path, 2)
    broker.data.mkdir(parents=True)
    meta = broker.data / "meta.properties"
    own = base64.urlsafe_b64encode(bytes(16)).decode().rstrip("=")
    meta.write_text(f"cluster.id={own}\nnode.id=2\n", encoding="utf-8")
    with pytest.raises(ServiceError, match="belongs to another cluster"):
        broker.prepare()
    assert meta.exists()


def spark(directory: Path, **options: object) -> Settings:
    given = {f"spark.{key}": value for key, value in options.items()}
    return load_settings(None, {"state_dir": directory} | given)


def test_a_worker_is_told_its_master_and_its_share(tmp_path: Path) -> None:
    settings = spark(tmp_path, master="spark://10.0.0.1:7077", worker_cores=2, worker_memory="3g")
    words = SparkWorker(settings).command([1, 2])
    assert words[-1] == "spark://10.0.0.1:7077"
    assert words[words.index("--cores") + 1] == "2"
    assert words[words.index("--memory") + 1] == "3g"
    with pytest.raises(ConfigError, match="no master that a worker can join"):
        SparkWorker(spark(tmp_path)).command([1, 2])


def test_spark_inherits_nothing_of_another_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_MASTER_WEBUI_PORT", "8080")
    monkeypatch.setenv("SPARK_HOME", "/opt/other")
    found = SparkMaster(spark(tmp_path)).environment()
    assert "SPARK_MASTER_WEBUI_PORT" not in found
    assert Path(found["SPARK_HOME"]).name == "pyspark"


def test_java_reads_paths_as_python_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An umlaut on the way to a jar, under LC_ALL=C."""
    monkeypatch.setenv("LC_ALL", "C")
    directory = tmp_path / "größe"
    directory.mkdir()
    for service in (member(directory, 1), SparkMaster(spark(directory))):
        environment = dict(service.environment())
        java = Path(environment["JAVA_HOME"]) / "bin" / "java"
        words = [str(java), "-XshowSettings:properties", f"-Dplace={directory}", "-version"]
        said = subprocess.run(words, env=environment, capture_output=True, check=True).stderr
        assert f"place = {directory}".encode() in said


def test_readiness_is_what_the_pages_say(tmp_path: Path) -> None:
    master, worker = SparkMaster(spark(tmp_path)), SparkWorker(spark(tmp_path))
    alive = {"status": "ALIVE", "aliveworkers": 2, "cores": 4}
    assert master.read(alive) == {"workers": "2", "cores": "4"}
    with pytest.raises(ServiceError, match="RECOVERING"):
        master.read(alive | {"status": "RECOVERING"})
    with pytest.raises(ServiceError, match="no master answers"):
        worker.read({"masterurl": "", "cores": 1, "memory": 1})


def test_a_master_stands_before_its_workers() -> None:
    names = [each.name for each in select(load_settings(), ["spark-worker", "spark-master"])]
    assert names == ["spark-master", "spark-worker"]
