"""The embedded MariaDB: loopback only, generated password, durable.

The server program is the machine's own where there is one, else the one in a pinned jar, which is
nothing but a zip; it is unpacked once, beside the jar.
"""

import os
import platform
import re
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espbench.config import Settings
from espbench.errors import ConfigError, MachineError, MissingExtra, ServiceError
from espbench.logs import LOGGER
from espbench.paths import StateDir, make_dir, write_atomically
from espbench.services import jars, unprivileged
from espbench.services.service import HOST, Service

USER = "espbench"
DATABASE = "espbench"
GROUP = "mariadb"
# Of the zip: the server, its messages and character sets, and what makes its system tables.
_UNPACKED = re.compile(r"/linux/((?:bin/mariadbd|share/(?:english|charsets)/.+|share/[^/]+\.sql))$")
_SYSTEM_TABLES = (
    "mariadb_system_tables.sql",
    "mariadb_performance_tables.sql",
    "mariadb_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
)
_SHOWN = (
    "version",
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "log_bin",
    "time_zone",
)

_NOT_YOURS = frozenset(
    {
        "bind-address",
        "datadir",
        "init-file",
        "pid-file",
        "plugin-dir",
        "port",
        "skip-grant-tables",
        "socket",
        "user",
    }
)


@dataclass(frozen=True, slots=True)
class Program:
    """A server program and the directory with its messages and SQL scripts."""

    executable: Path
    share: Path


class MariaDB(Service):
    """A MariaDB server with data of its own, reachable by TCP."""

    name = "mariadb"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.password_file = self.home / "password"

    def fetch(self) -> None:
        """The archive of the server."""
        jars.class_path(self.settings, GROUP)

    def prepare(self) -> None:
        """Make the system tables once; a data directory that was cut short is made again."""
        if not self.settings.listen_address.is_loopback:
            raise ConfigError(
                f"the embedded MariaDB listens on {HOST} only, not on {self.host}",
                "use a MariaDB of your own there (--db), or PostgreSQL",
            )
        if (self.data / "mysql").exists() and self.password_file.exists():
            self._own(self.data)
            return
        shutil.rmtree(self.data, ignore_errors=True)
        self._own(make_dir(self.data, mode=0o700))
        password = secrets.token_urlsafe(24)
        self._bootstrap(find_program(self.settings), password)
        # Last: its presence says that the data directory is whole.
        write_atomically(self.password_file, password + "\n", mode=0o600)

    def command(self, ports: list[int]) -> list[str]:
        """The server on its data directory."""
        program = find_program(self.settings)
        settings = self.home / "mariadb.cnf"
        own = configured(self.settings.database.server_settings)
        write_atomically(settings, _configuration(program, self.data, ports[0], own))
        return [*self._prefix(program), str(program.executable), f"--defaults-file={settings}"]

    def fixed_port(self) -> int:
        """The configured port, where it is meant for this database."""
        return self.settings.database.port if self.settings.database.url == self.name else 0

    def endpoint(self, ports: list[int]) -> dict[str, Any]:
        """Host, port, user and database; the password stays in its file."""
        return {"host": HOST, "port": ports[0], "user": USER, "database": DATABASE}

    def address(self, endpoint: dict[str, Any]) -> str:
        """The endpoint as a URL without password."""
        return "mariadb://{user}@{host}:{port}/{database}".format(**endpoint)

    def ask(self, endpoint: dict[str, Any]) -> dict[str, str]:
        """Log in by TCP and read the settings that decide about durability."""
        try:
            import pymysql  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra("pymysql", "databases") from error
        with (
            pymysql.connect(
                host=endpoint["host"],
                port=endpoint["port"],
                user=endpoint["user"],
                password=self.password_file.read_text(encoding="utf-8").strip(),
                connect_timeout=5,
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SHOW GLOBAL VARIABLES")
            found = dict(cursor.fetchall())
        return {name: str(found[name]) for name in _SHOWN if name in found}

    def _bootstrap(self, program: Program, password: str) -> None:
        """System tables and one user; by standard input, so that no password is on display."""
        scripts = [
            (program.share / name).read_text(encoding="utf-8")
            for name in _SYSTEM_TABLES
            if (program.share / name).exists()
        ]
        script = "\n".join(
            [
                "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;",
                *scripts,
                # Nobody else may log in: no root without a password.
                "DELETE FROM mysql.global_priv WHERE User <> 'mariadb.sys';",
                "DELETE FROM mysql.proxies_priv;",
                "FLUSH PRIVILEGES;",
                f"CREATE USER '{USER}'@'{HOST}' IDENTIFIED BY '{password}';",
                f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'{HOST}' WITH GRANT OPTION;\n",
            ]
        )
        command = [
            *self._prefix(program),
            *(str(program.executable), "--no-defaults", "--bootstrap", "--skip-log-bin"),
            *(f"--lc-messages-dir={program.share}", f"--datadir={self.data}"),
            *("--max-allowed-packet=8M", "--net-buffer-length=16K", "--log-warnings=0"),
        ]
        answer = subprocess.run(
            command, input=script, capture_output=True, text=True, check=False, cwd=self.home
        )
        if answer.returncode != 0:
            shutil.rmtree(self.data, ignore_errors=True)
            errors = [line for line in answer.stderr.splitlines() if "ERROR" in line]
            last = (errors or answer.stderr.strip().splitlines())[-1:]
            raise ServiceError(
                f"MariaDB's system tables could not be made: {' '.join(last)}",
                "check disk space and permissions of the state directory",
            )

    def _prefix(self, program: Program) -> list[str]:
        return unprivileged.prefix(program.executable, self.home)

    def _own(self, path: Path) -> None:
        if unprivileged.is_root():
            os.chown(path, *unprivileged.owner())


def find_program(settings: Settings) -> Program:
    """The machine's own server program, else the unpacked one of the jar."""
    for installed in filter(None, (shutil.which(name) for name in ("mariadbd", "mysqld"))):
        executable = Path(installed).resolve()
        for share in ("mariadb", "mysql"):
            directory = executable.parent.parent / "share" / share
            if (directory / _SYSTEM_TABLES[0]).exists():
                return Program(executable, directory)
    directory = _unpacked(settings)
    return Program(directory / "bin" / "mariadbd", directory / "share")


def _unpacked(settings: Settings) -> Path:
    jar = jars.pinned(GROUP)[0]
    target = StateDir.of(settings).jars / GROUP / f"server-{jar.version}"
    if target.exists():
        return target
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        raise MachineError(
            f"there is no MariaDB server to unpack for {platform.system()} {platform.machine()}",
            "install MariaDB's server, or name one with --db",
        )
    (archive,) = jars.class_path(settings, GROUP)
    LOGGER.info("unpacking MariaDB %s (once)", jar.version)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="unpack-") as name:
        draft = Path(name) / "server"
        _unpack(archive, draft)
        try:
            draft.rename(target)
        except OSError:
            # Another process was faster.
            if not target.exists():
                raise
    return target


def _unpack(archive: Path, draft: Path) -> None:
    with zipfile.ZipFile(archive) as content:
        for entry in content.infolist():
            found = _UNPACKED.search(entry.filename)
            if found is None:
                continue
            path = draft / found.group(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            with content.open(entry) as source, path.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
    server = draft / "bin" / "mariadbd"
    server.chmod(server.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def configured(settings: Mapping[str, str]) -> dict[str, str]:
    """The user's settings by their names in the configuration file.

    Raises `ConfigError` for those that would move the server or open it to others.
    """
    named = {name.lower().replace("_", "-"): value for name, value in settings.items()}
    for name in named:
        if name in _NOT_YOURS:
            raise ConfigError(
                f"database.server_settings.{name} cannot be set",
                "the embedded server decides about its place, port and network",
            )
    return named


def _configuration(program: Program, data: Path, port: int, own: Mapping[str, str]) -> str:
    settings: dict[str, Any] = {
        "lc-messages-dir": program.share,
        "character-sets-dir": program.share / "charsets",
        "datadir": data,
        "bind-address": HOST,
        "port": port,
        # Within the data directory, which is the server's working directory.
        "socket": "mariadb.sock",
        "pid-file": "mariadbd.pid",
        "skip-name-resolve": "ON",
        # Loopback only: nothing to encrypt for, and PostgreSQL beside it does not either.
        "skip-ssl": "ON",
        "skip-log-bin": "ON",
        # A load comes from the client.
        "local-infile": "ON",
        "character-set-server": "utf8mb4",
        "collation-server": "utf8mb4_bin",
        "default-time-zone": "+00:00",
        # Durable: what a commit reports is on disk.
        "innodb-flush-log-at-trx-commit": 1,
        "innodb-doublewrite": "ON",
        "innodb-buffer-pool-size": "512M",
        "innodb-log-file-size": "512M",
        "performance-schema": "OFF",
    } | dict(own)
    lines = [f"{key} = {value}\n" for key, value in settings.items()]
    return "".join(["[mariadbd]\n", *lines])
