"""MariaDB (and MySQL, which speaks the same), by PyMySQL.

A schema is a database here. Every statement that changes tables commits by itself, so a load is
marked as loading before it drops anything, and nothing of it can be undone.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import ClassVar

import pymysql
from pymysql.constants import CR, ER
from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Table,
    bindparam,
    create_engine,
    func,
    inspect,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from espbench.errors import ServiceError
from espbench.services.endpoints import DatabaseAddress
from schema.contract import Database, Observer, ServerInfo, Stamped, isolated
from schema.given import read_given
from schema.mariadb_observer import MariaDBObserver
from schema.mariadb_stamps import Stamping
from schema.mariadb_tls import tls_arguments, tls_options
from schema.streamed import with_file
from schema.tables import STAMPED

_CONNECT_TIMEOUT_S = 10
_LOCK_TIMEOUT_S = 30
_SESSION = "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_TABLE_OPTIONS = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    # Texts compare as PostgreSQL's do here: by their bytes.
    "mysql_collate": "utf8mb4_bin",
}
_NOT_ALLOWED = {
    ER.DBACCESS_DENIED_ERROR,
    ER.TABLEACCESS_DENIED_ERROR,
    ER.SPECIFIC_ACCESS_DENIED_ERROR,
}
_REMEDIES = {
    **dict.fromkeys(_NOT_ALLOWED, "the user needs the right to do this"),
    ER.ACCESS_DENIED_ERROR: "check ESPBENCH_DATABASE__PASSWORD or database.password_file",
    **dict.fromkeys((ER.DISK_FULL, ER.RECORD_FILE_FULL), "make room on the server's disk"),
    **dict.fromkeys(
        (ER.NOT_ALLOWED_COMMAND, 3948, 4166),
        "the server must allow it: SET GLOBAL local_infile = ON",
    ),
}
_SHOWN = (
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "innodb_flush_method",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "log_bin",
    "sync_binlog",
    "transaction_isolation",
    "tx_isolation",
    "character_set_server",
    "system_time_zone",
)


class MariaDB(Database):
    """A MariaDB or MySQL server, embedded or anywhere."""

    kind: ClassVar[str] = "mariadb"
    transactional_ddl: ClassVar[bool] = False
    # InnoDB keeps the rows in their primary key; a key that comes later writes the table anew.
    keys_before_load: ClassVar[bool] = True
    # It could, by copying the whole table for each; a join afterwards is many times as fast.
    checks_new_foreign_keys: ClassVar[bool] = False
    # LOAD DATA fills pages fuller than a rewrite does.
    load_is_pristine: ClassVar[bool] = False
    driver_error: ClassVar[type[Exception]] = pymysql.MySQLError

    def __init__(self, address: DatabaseAddress) -> None:
        super().__init__(address)
        for table in self.metadata.tables.values():
            table.kwargs.update(_TABLE_OPTIONS)
        # Only this format keeps room for a stamp that is still null: query 5 then writes in place,
        # where in others every page would split.
        self.table(STAMPED).kwargs["mysql_row_format"] = "REDUNDANT"

    def make_engine(self) -> Engine:
        """Sessions in UTC, strict, allowed to send what they load; TLS by options of the URL."""
        address = self.address
        url = URL.create(
            "mysql+pymysql",
            username=address.user,
            password=address.password.get_secret_value() if address.password else None,
            host=address.host,
            port=address.port,
            query={"charset": "utf8mb4"},
        )
        arguments = {
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "local_infile": True,
            "init_command": _session(address.session),
            "program_name": "espbench",
            **tls_arguments(dict(address.options)),
        }
        return create_engine(
            url, connect_args=arguments, poolclass=NullPool, **isolated(address.isolation)
        )

    def explain(self, error: Exception) -> ServiceError:
        """What MariaDB's errors mean to a user of `espbench load`."""
        number, message = _number_and_message(error)
        if number in {ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK}:
            return ServiceError(
                f"another session uses the tables of {self.address}", "end it and try again"
            )
        remedy = _REMEDIES.get(number or 0, "see its log; is it running?")
        if number == CR.CR_CONN_HOST_ERROR and "SSL" in message:
            remedy = "check sslmode and ssl-ca of the URL"
        return ServiceError(f"the database {self.address} failed: {message}", remedy)

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """One session, guarded by a named lock of the schema."""
        with self.errors(), self.engine.begin() as connection:
            session = int(connection.scalar(select(func.connection_id())) or 0)
            try:
                self._prepare(connection)
                yield connection
            except (SQLAlchemyError, pymysql.MySQLError):
                raise
            except BaseException:
                self._end_session(session)
                connection.invalidate()
                raise

    def _prepare(self, connection: Connection) -> None:
        connection.execute(
            text(
                "SET SESSION lock_wait_timeout = :seconds, innodb_lock_wait_timeout = :seconds, "
                "foreign_key_checks = 0"
            ),
            {"seconds": _LOCK_TIMEOUT_S},
        )
        key = f"espbench:{zlib.crc32(self.address.schema_name.encode()):08x}"
        if not connection.scalar(select(func.get_lock(key, 0))):
            raise ServiceError(
                f"another load or reset works on the schema {self.address.schema_name} "
                f"of {self.address}",
                "wait for it, or end it",
            )

    def _end_session(self, session: int) -> None:
        """Stop what an interruption left running: the server does not notice by itself."""
        with suppress(SQLAlchemyError), self.engine.connect() as other:
            other.execute(text("KILL :session"), {"session": session})

    def ensure_schema(self, connection: Connection) -> None:
        """Make the database unless it is there, which needs no right to create one."""
        if self.address.schema_name not in inspect(connection).get_schema_names():
            name = _quoted(connection, self.address.schema_name)
            connection.execute(
                text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
            )

    def dependents(self, connection: Connection, names: Iterable[str]) -> list[str]:
        """Foreign keys of other tables, and views that name one of ours."""
        ours, schema = sorted(names), self.address.schema_name
        references = connection.execute(
            text(
                "SELECT DISTINCT constraint_schema, table_name "
                "FROM information_schema.referential_constraints "
                "WHERE unique_constraint_schema = :schema AND referenced_table_name IN :ours "
                "AND NOT (constraint_schema = :schema AND table_name IN :ours)"
            ).bindparams(bindparam("ours", expanding=True)),
            {"schema": schema, "ours": ours},
        )
        found = [f"the table {where}.{name}" for where, name in references]
        views = connection.execute(
            text(
                "SELECT table_schema, table_name, view_definition FROM information_schema.views "
                "WHERE instr(view_definition, :schema)"
            ),
            {"schema": f"`{schema}`."},
        )
        wanted = [f"`{schema}`.`{name}`" for name in ours]
        found += [
            f"the view {where}.{name}"
            for where, name, definition in views
            if any(one in str(definition) for one in wanted)
        ]
        return found

    def bulk_load(self, connection: Connection, target: Table, blocks: Iterable[bytes]) -> int:
        """LOAD DATA LOCAL; committed at once, as the marker says that the load is not whole."""
        rows = _load_data(connection, target, blocks)
        connection.connection.commit()
        return rows

    def bulk_update(self, connection: Connection, lines: Iterable[bytes]) -> Stamped:
        """One UPDATE that joins the lines, sent as JSON, with the table."""
        given = read_given(lines)
        if not given.inputs:
            return Stamped(0, 0)
        stamping = Stamping(_full_name(connection, self.table(STAMPED)))
        if stamping.update(connection, given) == given.rows.shape[1]:
            return Stamped(given.inputs, 0)
        return Stamped(given.inputs, stamping.unknown(connection, given))

    def restore_stamps(self, connection: Connection) -> None:
        """New columns in place of the old ones, and the table written anew in its key's order."""
        name = _full_name(connection, self.table(STAMPED))
        connection.exec_driver_sql(
            f"ALTER TABLE {name} DROP COLUMN pol_start_ts, DROP COLUMN pol_end_ts, "
            "ADD COLUMN pol_start_ts DATETIME(6) NULL, ADD COLUMN pol_end_ts DATETIME(6) NULL, "
            "FORCE, ALGORITHM=INPLACE"
        )

    def wear(self, connection: Connection) -> int | None:
        """The pages of the rows: stamps make rows longer, which splits pages for good."""
        target = self.table(STAMPED)
        # The size is known as of the last ANALYZE, which takes milliseconds.
        connection.exec_driver_sql(f"ANALYZE TABLE {_full_name(connection, target)}").all()
        found = connection.scalar(
            text(
                "SELECT data_length FROM information_schema.tables "
                "WHERE table_schema = :schema AND table_name = :name"
            ),
            {"schema": target.schema, "name": target.name},
        )
        return None if found is None else int(found)

    def settle(self, names: Iterable[str]) -> None:
        """ANALYZE, then every changed page to disk where the user may ask for that."""
        engine = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        with self.errors(), engine.connect() as connection:
            listed = ", ".join(_full_name(connection, self.table(name)) for name in names)
            connection.exec_driver_sql(f"ANALYZE TABLE {listed}").all()
            try:
                connection.exec_driver_sql(f"FLUSH TABLES {listed} FOR EXPORT")
                connection.exec_driver_sql("UNLOCK TABLES")
            except SQLAlchemyError as error:
                # Without the right to ask, the server writes them when it wants to.
                if _number_and_message(error)[0] not in _NOT_ALLOWED:
                    raise

    def now(self) -> ColumnElement[datetime]:
        """`SYSDATE(6)`, in sessions whose zone is UTC."""
        return literal_column("SYSDATE(6)", mysql.DATETIME(fsp=6))

    def jdbc(self) -> dict[str, str]:
        """MariaDB's Java driver; times without zone are UTC, as the JVM's zone is."""
        address = self.address
        given, mode = tls_options(dict(address.options))
        tls = {"sslMode": {"require": "trust"}.get(mode, mode)} if mode != "prefer" else {}
        if "ssl-ca" in given:
            tls["serverSslCert"] = given["ssl-ca"]
        return {
            "url": f"jdbc:mariadb://{address.host}:{address.port}/{address.schema_name}",
            "driver": "org.mariadb.jdbc.Driver",
            "user": address.user,
            **({"password": address.password.get_secret_value()} if address.password else {}),
            **tls,
        }

    def observer(self) -> Observer:
        """Its information schema and counters."""
        return MariaDBObserver(self)

    def server(self) -> ServerInfo:
        """Version and the settings that decide about durability."""
        with self.reading() as connection:
            version = str(connection.scalar(select(func.version())))
            rows = connection.execute(text("SHOW GLOBAL VARIABLES"))
            found = {str(name): str(value) for name, value in rows}
        product = "MariaDB" if "mariadb" in version.lower() else "MySQL"
        return ServerInfo(product, version, {n: found[n] for n in _SHOWN if n in found})


def _session(settings: Iterable[tuple[str, str]]) -> str:
    """What every session begins with; names were checked with the configuration."""
    own = [
        f"{name} = {value if _NUMBER.fullmatch(value) else _text(value)}"
        for name, value in settings
    ]
    return ", ".join([_SESSION, *own])


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _load_data(connection: Connection, target: Table, blocks: Iterable[bytes]) -> int:
    """LOAD DATA LOCAL; raises for the first remark, because LOCAL turns every error into one."""
    columns = ", ".join(_quoted(connection, name) for name in target.columns.keys())  # noqa: SIM118 - by name

    def load(path: str) -> int:
        return connection.exec_driver_sql(
            f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {_full_name(connection, target)} "
            r"CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\t' ESCAPED BY '\\' "
            rf"LINES TERMINATED BY '\n' ({columns})"
        ).rowcount

    rows = with_file(blocks, load)
    remarks = connection.exec_driver_sql("SHOW WARNINGS LIMIT 1").all()
    if remarks:
        _level, _number, message = remarks[0]
        raise ServiceError(
            f"the table {target.name} refused a row: {message}",
            "make the data again: espbench datagen --force",
        )
    return rows


def _full_name(connection: Connection, target: Table) -> str:
    return connection.dialect.identifier_preparer.format_table(target)


def _quoted(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote_identifier(name)


def _number_and_message(error: Exception) -> tuple[int | None, str]:
    """What the server said, whoever wrapped it."""
    origin = getattr(error, "orig", None) or error
    match origin.args:
        case (int(number), str(message), *_):
            return number, " ".join(message.split())
    return None, (str(origin).strip().splitlines() or [type(origin).__name__])[0]
