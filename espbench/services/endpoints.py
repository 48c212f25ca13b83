"""Where the broker and the database are: given by the user, or embedded and running."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from espbench.config import DatabaseSettings, Settings
from espbench.errors import ConfigError, ServiceError
from espbench.kafka.security import Servers, check_fixed, translated
from espbench.paths import StateDir

DEFAULT_PORTS = {"postgresql": 5432, "mariadb": 3306, "mysql": 3306}
# Databases that can be embedded; `database.url` may be such a word alone. The first is the default.
EMBEDDED_DATABASES = ("postgresql", "mariadb")


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """How to reach a database; `kind` names the plug-in, `options` stood in the URL."""

    kind: str
    host: str
    port: int
    user: str
    database: str
    password: SecretStr | None = None
    schema_name: str = "espbench"
    options: tuple[tuple[str, str], ...] = ()
    # How sessions behave: their settings, their isolation level, and how query 5 writes.
    session: tuple[tuple[str, str], ...] = ()
    isolation: str | None = None
    writes: str = "bulk"

    def __str__(self) -> str:
        return f"{self.kind}://{self.user}@{self.host}:{self.port}/{self.database}"


def bootstrap_servers(settings: Settings) -> Servers:
    """Kafka's address; raises `ServiceError` where none was given and none is running."""
    check_fixed(settings.kafka.options)
    if settings.kafka.bootstrap_servers:
        return Servers(settings.kafka.bootstrap_servers, translated(settings.kafka.options))
    endpoint = _embedded(settings, "kafka", "--bootstrap-servers")
    return Servers(str(endpoint["bootstrap_servers"]), translated(settings.kafka.options))


def embedded_database(settings: Settings) -> str | None:
    """Which embedded database these settings mean; None where a URL names another one."""
    given = settings.database.url
    if given is None:
        return EMBEDDED_DATABASES[0]
    return given if given in EMBEDDED_DATABASES else None


def database_address(settings: Settings) -> DatabaseAddress:
    """The database's address; raises `ServiceError` where none was given and none is running."""
    kind = embedded_database(settings)
    if kind is None:
        return parse_database_url(settings)
    endpoint = _embedded(settings, kind, "--db")
    return DatabaseAddress(
        kind=kind,
        host=str(endpoint["host"]),
        port=int(endpoint["port"]),
        user=str(endpoint["user"]),
        database=str(endpoint["database"]),
        password=_read_secret(StateDir.of(settings).service(kind) / "password"),
        schema_name=settings.database.schema_name,
        **_sessions(settings.database),
    )


def parse_database_url(settings: Settings) -> DatabaseAddress:
    """The address in `database.url`, with the password from where it is kept."""
    given = settings.database
    parts = urlsplit(given.url or "")
    kind = parts.scheme.split("+")[0]
    if kind not in DEFAULT_PORTS or not parts.hostname or not parts.username:
        raise ConfigError(
            f"database.url is not a database address: {kind or '(empty)'}://…",
            "write it as postgresql://user@host:5432/name, or one of the embedded ones: "
            + ", ".join(EMBEDDED_DATABASES),
        )
    try:
        port = parts.port or DEFAULT_PORTS[kind]
    except ValueError as error:
        raise ConfigError("the port in database.url is not a number", "correct it") from error
    password = given.password
    if given.password_file:
        password = _read_secret(given.password_file)
    elif password is None and parts.password:
        password = SecretStr(unquote(parts.password))
    pairs = [pair.partition("=") for pair in parts.query.split("&") if pair]
    user, named = unquote(parts.username), unquote(parts.path.lstrip("/"))
    kind = "mariadb" if kind == "mysql" else kind
    schema_name = given.schema_name
    if kind == "mariadb":
        named = schema_name = _one_name(given, named)
    return DatabaseAddress(
        kind=kind,
        host=parts.hostname,
        port=port,
        user=user,
        database=named or user,
        password=password,
        schema_name=schema_name,
        options=tuple((unquote(key), unquote(value)) for key, _, value in pairs),
        **_sessions(given),
    )


def _sessions(given: DatabaseSettings) -> dict[str, Any]:
    return {
        "session": tuple(sorted(given.session_settings.items())),
        "isolation": given.isolation,
        "writes": given.writes,
    }


def _one_name(given: DatabaseSettings, named: str) -> str:
    """A schema is a database in MariaDB: the URL's, else the configured one, never two."""
    if not named:
        return given.schema_name
    if "schema_name" in given.model_fields_set and given.schema_name != named:
        raise ConfigError(
            f"database.url names the database {named}, database.schema_name {given.schema_name}",
            "in MariaDB they are the same thing: give one of them",
        )
    return named


def _embedded(settings: Settings, service: str, option: str) -> dict[str, Any]:
    path = StateDir.of(settings).service(service) / "endpoint.json"
    try:
        endpoint: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ServiceError(
            f"the embedded {service} is not running",
            f"start it with `espbench up {service}` or use {option}",
        ) from error
    return endpoint


def _read_secret(path: Path) -> SecretStr:
    try:
        # A line end of either kind is the editor's, not the password's.
        secret = path.expanduser().read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ConfigError(
            f"cannot read the password file {path}: {error.strerror}", "check path and permissions"
        ) from error
    except UnicodeDecodeError as error:
        # Without the error's own words: they quote bytes of the secret.
        raise ConfigError(f"the password file {path} is not UTF-8", "write it as UTF-8") from error
    if not secret:
        raise ConfigError(f"the password file {path} is empty", "write the password into it")
    return SecretStr(secret)
