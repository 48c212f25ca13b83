"""Which plug-in serves which kind of database."""

from collections.abc import Callable

from espbench.errors import ConfigError, MissingExtra
from espbench.services.endpoints import DatabaseAddress
from schema.contract import Database


def open_database(address: DatabaseAddress) -> Database:
    """The database at this address; connects when first used."""
    try:
        make = _PLUGINS[address.kind]
    except KeyError as error:
        known = ", ".join(_PLUGINS)
        raise ConfigError(
            f"there is no support for {address.kind} databases", f"use one of: {known}"
        ) from error
    try:
        return make(address)
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "databases") from error


def _postgresql(address: DatabaseAddress) -> Database:
    from schema.postgresql import PostgreSQL  # noqa: PLC0415 - its driver may not be installed

    return PostgreSQL(address)


def _mariadb(address: DatabaseAddress) -> Database:
    from schema.mariadb import MariaDB  # noqa: PLC0415 - likewise

    return MariaDB(address)


_PLUGINS: dict[str, Callable[[DatabaseAddress], Database]] = {
    "postgresql": _postgresql,
    "mariadb": _mariadb,
}
