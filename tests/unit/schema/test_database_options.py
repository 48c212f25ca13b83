"""Which database is meant, and how it is reached: URL, options, password, TLS."""

from pathlib import Path
from typing import Any

import pytest

from espbench.config import Settings, load_settings
from espbench.errors import ConfigError, ServiceError
from espbench.services.endpoints import (
    DatabaseAddress,
    database_address,
    embedded_database,
    parse_database_url,
)
from schema.mariadb import MariaDB
from schema.mariadb_tls import tls_arguments
from schema.registry import open_database
from schema.testkit import Authority

OTHER = "another-one"


def settings(url: str | None, **database: Any) -> Settings:
    options = {f"database.{key}": value for key, value in database.items()}
    return load_settings(None, {"database.url": url, **options})


def address(url: str, **database: Any) -> DatabaseAddress:
    return parse_database_url(settings(url, **database))


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        (None, "postgresql"),
        ("postgresql", "postgresql"),
        ("mariadb", "mariadb"),
        ("mariadb://me@db/bench", None),
        ("postgresql://me@db/bench", None),
    ],
)
def test_a_word_alone_means_the_embedded_database(url: str | None, kind: str | None) -> None:
    assert embedded_database(settings(url)) == kind


def test_an_embedded_database_that_is_not_running_is_named(tmp_path: Path) -> None:
    stopped = load_settings(None, {"state_dir": tmp_path, "database.url": "mariadb"})
    with pytest.raises(ServiceError, match="embedded mariadb is not running") as caught:
        database_address(stopped)
    assert "espbench up mariadb" in caught.value.remedy


@pytest.mark.parametrize("url", ["oracle", "mysql", "postgresql://", "mariadb://db/bench"])
def test_anything_else_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not a database address"):
        database_address(settings(url))


def test_in_mariadb_the_urls_database_is_the_schema() -> None:
    assert address("mariadb://me@db/bench").schema_name == "bench"
    assert address("mysql://me@db/bench").kind == "mariadb"
    assert address("mariadb://me@db").schema_name == "espbench"
    assert address("mariadb://me@db:3307/", schema_name="mine").schema_name == "mine"
    assert address("mariadb://me@db/bench", schema_name="bench").schema_name == "bench"
    with pytest.raises(ConfigError, match="names the database bench"):
        address("mariadb://me@db/bench", schema_name="mine")


def test_in_postgresql_database_and_schema_are_two_things() -> None:
    found = address("postgresql://me@db/bench", schema_name="mine")
    assert (found.database, found.schema_name) == ("bench", "mine")


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_password_file_is_honoured(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "password"
    secret.write_text("very secret \n", encoding="utf-8")
    found = address(f"{kind}://me@db/bench", password_file=secret, password=OTHER)
    assert found.password is not None
    assert found.password.get_secret_value() == "very secret "
    assert "secret" not in f"{found!r} {found}"
    with open_database(found) as database:
        assert database.engine.url.password == found.password.get_secret_value()
        assert "secret" not in repr(database.engine)
    with pytest.raises(ConfigError, match="cannot read the password file"):
        address(f"{kind}://me@db/bench", password_file=tmp_path / "none")


def test_a_password_file_of_another_editor_is_read_or_refused(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_bytes(b"very secret\r\n")
    found = address("postgresql://me@db/bench", password_file=secret)
    assert found.password is not None
    assert found.password.get_secret_value() == "very secret"
    secret.write_bytes(b"very s\xe9cret\n")
    with pytest.raises(ConfigError, match="is not UTF-8") as caught:
        address("postgresql://me@db/bench", password_file=secret)
    assert "very" not in caught.value.line()
    secret.write_bytes(b"\n")
    with pytest.raises(ConfigError, match="is empty"):
        address("postgresql://me@db/bench", password_file=secret)


def test_a_url_that_cannot_be_taken_apart_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"database.url = \(hidden\) is not allowed"):
        settings("postgresql://me:word@[::1:5432/bench")


@pytest.fixture
def pem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An authority, and a certificate with its key, in the working directory."""
    monkeypatch.chdir(tmp_path)
    authority = Authority("authority")
    authority.write(tmp_path / "ca.pem")
    authority.issue(tmp_path / "c", tmp_path / "k")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"sslmode": "prefer"}, {}),
        ({"sslmode": "disable"}, {"ssl_disabled": True}),
        ({"sslmode": "require"}, {"ssl": {"verify_mode": False, "check_hostname": False}}),
        (
            {"sslmode": "verify-ca", "ssl-ca": "ca.pem"},
            {"ssl": {"ca": "ca.pem", "verify_mode": True, "check_hostname": False}},
        ),
        # Who names an authority wants it asked.
        (
            {"ssl_ca": "ca.pem"},
            {"ssl": {"ca": "ca.pem", "verify_mode": True, "check_hostname": True}},
        ),
        (
            {"sslmode": "verify-full", "ssl-cert": "c", "ssl-key": "k"},
            {"ssl": {"cert": "c", "key": "k", "verify_mode": True, "check_hostname": True}},
        ),
    ],
)
@pytest.mark.usefixtures("pem")
def test_tls_options_reach_the_driver(options: dict[str, str], expected: dict[str, Any]) -> None:
    assert tls_arguments(options) == expected


@pytest.mark.parametrize(
    "options", [{"ssl-ca": "none"}, {"ssl-ca": "k"}, {"ssl-cert": "c", "ssl-key": "none"}]
)
@pytest.mark.usefixtures("pem")
def test_tls_files_that_cannot_be_used_are_named(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="cannot be used") as caught:
        tls_arguments(options)
    assert all(f"{name} {path}" in caught.value.cause for name, path in options.items())


@pytest.mark.parametrize("options", [{"sslmode": "maybe"}, {"ssl-cs": "ca.pem"}, {"timeout": "1"}])
def test_unknown_options_are_refused_not_ignored(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="unknown"):
        tls_arguments(options)


def test_unknown_options_of_libpq_are_refused() -> None:
    with (
        open_database(address("postgresql://me@db/bench?ssl-ca=ca.pem")) as database,
        pytest.raises(ConfigError, match=r"unknown option.*ssl-ca"),
    ):
        database.server()


def connect_arguments(url: str, monkeypatch: pytest.MonkeyPatch, driver: str) -> dict[str, Any]:
    """What the driver is called with."""
    seen: dict[str, Any] = {}

    class Seen(Exception):
        """Instead of a connection."""

    def connect(*_arguments: Any, **given: Any) -> None:
        seen.update(given)
        raise Seen

    monkeypatch.setattr(driver, connect)
    with open_database(address(url)) as database, pytest.raises(Seen):
        database.engine.connect()
    return seen


def test_options_of_the_url_are_passed_to_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://me@db/bench?sslmode=verify-full&sslrootcert=/etc/my%20ca.pem"
    seen = connect_arguments(url, monkeypatch, "psycopg.connect")
    assert seen["sslmode"] == "verify-full"
    assert seen["sslrootcert"] == "/etc/my ca.pem"
    assert seen["host"] == "db"


@pytest.mark.usefixtures("pem")
def test_options_of_the_url_are_passed_to_pymysql(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "mariadb://me@db/bench?ssl-ca=ca.pem"
    seen = connect_arguments(url, monkeypatch, "pymysql.connect")
    assert seen["ssl"] == {"ca": "ca.pem", "verify_mode": True, "check_hostname": True}
    assert "+00:00" in seen["init_command"]


def test_a_mariadb_that_does_not_answer_is_named_without_its_password() -> None:
    silent = address("mariadb://me@127.0.0.1:1/bench", password=OTHER)
    with open_database(silent) as database, pytest.raises(ServiceError) as caught:
        database.server()
    assert isinstance(database, MariaDB)
    assert "mariadb://me@127.0.0.1:1/bench" in caught.value.line()
    assert OTHER not in caught.value.line()


@pytest.mark.parametrize("option", ["ssl-ca", "ssl_ca"])
def test_an_authority_reaches_javas_driver_however_it_is_spelled(option: str) -> None:
    with open_database(address(f"mariadb://me@db/bench?{option}=ca.pem")) as database:
        found = database.jdbc()
    assert (found["sslMode"], found["serverSslCert"]) == ("verify-full", "ca.pem")
