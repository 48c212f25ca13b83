"""Both databases as real servers, a schema a test, and data sets that are made once."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from datagen.parameters import Parameters
from espbench import services as embedded
from espbench.config import load_settings
from espbench.services import unprivileged
from espbench.services.endpoints import DatabaseAddress, database_address
from schema.contract import Database
from schema.dataset import DataSet
from schema.registry import open_database
from schema.testkit import Authority, tls_before_postgresql
from tests.integration.database.given import CASCADE, KINDS, SMALL, make


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return make(tmp_path_factory.mktemp("data"), SMALL)


@pytest.fixture(scope="session")
def other_data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return make(tmp_path_factory.mktemp("other"), SMALL.model_copy(update={"seed": 6}))


@pytest.fixture(scope="session")
def big_data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return make(tmp_path_factory.mktemp("big"), Parameters(scale=1, seed=9, sensor_rows=1))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's certificate and key, its authority's, and the one of another authority."""
    directory = tmp_path_factory.mktemp("certificates")
    authority = Authority("authority")
    authority.write(directory / "ca.pem")
    authority.issue(directory / "server.pem", directory / "server.key")
    Authority("another authority").write(directory / "other-ca.pem")
    if unprivileged.is_root():
        for path in (directory, *directory.iterdir()):
            os.chown(path, *unprivileged.owner())
    return directory


@pytest.fixture(scope="session", params=KINDS)
def server(
    state_dir: Path, certificates: Path, request: pytest.FixtureRequest
) -> Iterator[Database]:
    """A running embedded server, stopped at the end if it did not run before."""
    pair = (str(certificates / "server.pem"), str(certificates / "server.key"))
    tls: dict[str, dict[str, str]] = {
        "postgresql": {},
        "mariadb": dict(zip(("ssl-cert", "ssl-key"), pair, strict=True)) | {"skip-ssl": "0"},
    }
    settings = load_settings(
        None,
        {
            "state_dir": state_dir,
            "database.url": request.param,
            "database.server_settings": tls[request.param],
        },
    )
    (service,) = embedded.select(settings, [request.param])
    started = service.start()
    try:
        with open_database(database_address(settings)) as opened:
            yield opened
    finally:
        if started:
            service.stop()


@pytest.fixture
def database(server: Database, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A schema of the test's own."""
    name = f"t{abs(hash(request.node.name)) % 10**12}"
    with open_database(replace(server.address, schema_name=name)) as opened:
        yield opened
        with opened.engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA IF EXISTS {name} {CASCADE[opened.kind]}"))


@pytest.fixture
def guarded(database: Database, certificates: Path) -> Iterator[DatabaseAddress]:
    """Where the server speaks TLS: MariaDB by itself; PostgreSQL's wheel was built without it."""
    if database.kind == "mariadb":
        yield database.address
        return
    pair = (certificates / "server.pem", certificates / "server.key")
    with tls_before_postgresql(database.address.port, *pair) as port:
        yield replace(database.address, port=port)
