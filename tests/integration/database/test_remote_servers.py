"""Servers by address: TLS as strict as the URL says, passwords from files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from espbench.errors import ServiceError
from espbench.services.endpoints import DatabaseAddress
from schema.contract import Database
from schema.dataset import DataSet
from schema.load import is_loaded
from schema.registry import open_database
from tests.integration.database.given import AUTHORITY, OTHER, espbench, url_of


def encrypted(address: DatabaseAddress, **options: str) -> bool:
    """Whether a session with these options of the URL is encrypted."""
    with (
        open_database(replace(address, options=tuple(options.items()))) as opened,
        opened.reading() as connection,
    ):
        if opened.kind == "postgresql":
            driver: Any = connection.connection.driver_connection
            return bool(driver.pgconn.ssl_in_use)
        cipher = text("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        return bool(connection.execute(cipher).one()[1])


def test_tls_is_as_strict_as_the_url_says(guarded: DatabaseAddress, certificates: Path) -> None:
    authority = AUTHORITY[guarded.kind]
    right = {authority: str(certificates / "ca.pem")}
    wrong = {authority: str(certificates / "other-ca.pem")}
    assert not encrypted(guarded, sslmode="disable")
    assert encrypted(guarded, sslmode="require")
    assert encrypted(guarded, sslmode="verify-ca", **right)
    assert encrypted(guarded, sslmode="verify-full", **right)
    for mode in ("verify-ca", "verify-full"):
        with pytest.raises(ServiceError, match=r"(?i)certificate verify failed") as caught:
            encrypted(guarded, sslmode=mode, **wrong)
        assert authority in caught.value.remedy


def test_a_remote_server_is_loaded_with_tls_and_a_password_file(
    state_dir: Path,
    database: Database,
    guarded: DatabaseAddress,
    data: DataSet,
    certificates: Path,
) -> None:
    # In MariaDB the schema is the URL's database.
    name = database.address.schema_name if database.kind == "mariadb" else None
    plain = url_of(guarded, name=name)
    secret = str(state_dir / "services" / database.kind / "password")
    directory = str(data.production_times.path.parent)

    def loaded(url: str, **variables: str) -> tuple[int, str, str]:
        process = espbench(state_dir, database, "--data", directory, "--json", db=url, **variables)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    full = f"{plain}?sslmode=verify-full&{AUTHORITY[database.kind]}={certificates}"
    code, out, err = loaded(f"{full}/ca.pem", ESPBENCH_DATABASE__PASSWORD_FILE=secret)
    assert (code, json.loads(out)["loaded"]) == (0, True), err
    assert is_loaded(database, data)
    refusals = {
        "certificate verify failed": loaded(
            f"{full}/other-ca.pem", ESPBENCH_DATABASE__PASSWORD_FILE=secret
        ),
        "ESPBENCH_DATABASE__PASSWORD": loaded(plain, ESPBENCH_DATABASE__PASSWORD=OTHER),
        "is it running": loaded(
            plain.replace(f":{guarded.port}", ":1"), ESPBENCH_DATABASE__PASSWORD=OTHER
        ),
    }
    if database.kind == "postgresql":
        refusals['database "none"'] = loaded(
            url_of(database.address, name="none"), ESPBENCH_DATABASE__PASSWORD_FILE=secret
        )
    for words, (code, out, err) in refusals.items():
        assert (code, json.loads(out)["exit_code"]) == (3, 3), err
        assert words.lower() in err.lower()
        assert err.count("\n") == 1
        assert OTHER not in err
    assert is_loaded(database, data)
