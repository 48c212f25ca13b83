"""The embedded MariaDB: who may reach it, and what survives."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pymysql
import pytest

from espbench import services as embedded
from espbench.config import load_settings
from espbench.services.endpoints import database_address
from espbench.services.service import Service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, state_dir: Path) -> Iterator[Service]:
    """A server in a state directory of its own, with the shared jars."""
    own = tmp_path_factory.mktemp("mariadb")
    (own / "jars").symlink_to((state_dir / "jars").resolve())
    settings = load_settings(None, {"state_dir": own, "database.url": "mariadb"})
    (found,) = embedded.select(settings, ["mariadb"])
    found.start()
    yield found
    found.stop()


def connect(service: Service, **changed: object) -> "pymysql.Connection[pymysql.cursors.Cursor]":
    address = database_address(service.settings)
    assert address.password is not None
    given: dict[str, object] = {
        "host": address.host,
        "port": address.port,
        "user": address.user,
        "password": address.password.get_secret_value(),
    }
    return pymysql.connect(**{**given, **changed})  # type: ignore[call-overload, no-any-return]


def test_only_the_generated_password_opens_it(service: Service) -> None:
    for changed in ({"password": ""}, {"user": "root", "password": ""}, {"user": "nobody"}):
        with pytest.raises(pymysql.OperationalError, match="Access denied"):
            connect(service, **changed)
    with connect(service) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT user, host FROM mysql.user WHERE user <> 'mariadb.sys'")
        assert cursor.fetchall() == (("espbench", "127.0.0.1"),)
    password = service.home / "password"
    assert password.stat().st_mode & 0o077 == 0


def test_it_listens_on_loopback_alone_and_its_socket_lies_in_its_home(service: Service) -> None:
    record = service.record()
    assert record is not None
    connections = psutil.Process(record.pid).net_connections()
    listening = [one.laddr for one in connections if one.status == psutil.CONN_LISTEN]
    assert {address.ip for address in listening if not isinstance(address, str)} == {"127.0.0.1"}
    assert (service.data / "mariadb.sock").is_socket()


def test_it_is_durable_and_keeps_its_data_when_killed(service: Service) -> None:
    assert service.status().settings["innodb_flush_log_at_trx_commit"] == "1"
    with connect(service, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE kept")
        cursor.execute("CREATE TABLE kept.numbers (n INT PRIMARY KEY)")
        cursor.execute("INSERT INTO kept.numbers VALUES (1), (2)")
    record = service.record()
    assert record is not None
    process = record.process()
    assert process is not None
    process.kill()
    process.wait(30)
    assert service.status().state == "died"
    assert service.start()
    with connect(service) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM kept.numbers")
        assert cursor.fetchone() == (2,)


def test_it_is_started_only_where_it_is_named(service: Service, tmp_path: Path) -> None:
    names = [one.name for one in embedded.select(service.settings)]
    assert names == ["kafka", "postgresql"]
    assert service.name in {one.name for one in embedded.present(service.settings)}
    fresh = load_settings(None, {"state_dir": tmp_path})
    assert [one.name for one in embedded.present(fresh)] == names
