"""PostgreSQL, by psycopg 3."""

import logging
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from typing import ClassVar

import psycopg
from psycopg import sql
from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    Table,
    cast,
    create_engine,
    func,
    inspect,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import OID
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateSchema

from espbench.errors import ServiceError
from schema.contract import Database, Observer, ServerInfo, Stamped, isolated
from schema.given import read_given
from schema.postgresql_connection import refuse_unknown, remedy_of
from schema.postgresql_observer import PostgreSQLObserver
from schema.postgresql_stamps import Stamping
from schema.tables import STAMPED

# The driver's remarks about errors that we report ourselves.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_CONNECT_TIMEOUT_S = 10
_SESSION = {"TimeZone": "UTC", "client_encoding": "UTF8"}
_LOCK_TIMEOUT = "30s"
# Vacuuming is bound by one core of the server a table.
_TABLES_AT_ONCE = 2
# From here on the server counts updates that went to another page.
_TELLS_NEW_PAGES = 160_000
# From here on a session can have its counters seen at its next commit, not some time later.
_FLUSHES_COUNTERS = 150_000
_SHOWN = (
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "wal_level",
    "track_commit_timestamp",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "data_checksums",
    "jit",
)


class PostgreSQL(Database):
    """A PostgreSQL server, embedded or anywhere."""

    kind: ClassVar[str] = "postgresql"
    transactional_ddl: ClassVar[bool] = True
    keys_before_load: ClassVar[bool] = False
    checks_new_foreign_keys: ClassVar[bool] = True
    load_is_pristine: ClassVar[bool] = True
    driver_error: ClassVar[type[Exception]] = psycopg.Error

    def make_engine(self) -> Engine:
        """Sessions in UTC; options of the URL such as `sslmode` go to libpq."""
        address = self.address
        refuse_unknown(dict(address.options))
        url = URL.create(
            "postgresql+psycopg",
            username=address.user,
            password=address.password.get_secret_value() if address.password else None,
            host=address.host,
            port=address.port,
            database=address.database,
        )
        arguments = {
            "connect_timeout": str(_CONNECT_TIMEOUT_S),
            "application_name": "espbench",
            "options": " ".join(
                f"-c {name}={_escaped(value)}"
                for name, value in (*_SESSION.items(), *address.session)
            ),
            **dict(address.options),
        }
        return create_engine(
            url, connect_args=arguments, poolclass=NullPool, **isolated(address.isolation)
        )

    def explain(self, error: Exception) -> ServiceError:
        """What PostgreSQL's errors mean to a user of `espbench load`."""
        origin = getattr(error, "orig", None) or error
        if isinstance(origin, psycopg.errors.LockNotAvailable):
            return ServiceError(
                f"another session uses the tables of {self.address}", "end it and try again"
            )
        explained = super().explain(error)
        return ServiceError(explained.cause, remedy_of(origin) or explained.remedy)

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """One transaction, guarded by an advisory lock of the schema."""
        with self.errors(), self.engine.begin() as connection:
            session = _raw(connection).info.backend_pid
            try:
                self._prepare(connection)
                yield connection
                if _raw(connection).info.server_version >= _FLUSHES_COUNTERS:
                    # What this session did must not look like a run's doing later.
                    connection.execute(select(func.pg_stat_force_next_flush()))
            except BaseException as error:
                if _is_cut_off(connection, error):
                    self._end_session(session)
                    connection.invalidate()
                raise

    def _prepare(self, connection: Connection) -> None:
        # A role's own timeouts are meant for its applications, not for a bulk load.
        for name, value in (
            ("statement_timeout", "0"),
            ("idle_in_transaction_session_timeout", "0"),
            ("lock_timeout", _LOCK_TIMEOUT),
            ("maintenance_work_mem", "512MB"),
            ("work_mem", "128MB"),
        ):
            connection.execute(select(func.set_config(name, value, True)))  # noqa: FBT003 - SQL's
        key = zlib.crc32(f"espbench:{self.address.schema_name}".encode())
        if not connection.scalar(select(func.pg_try_advisory_xact_lock(key))):
            raise ServiceError(
                f"another load or reset works on the schema {self.address.schema_name} "
                f"of {self.address}",
                "wait for it, or end it",
            )

    def _end_session(self, session: int) -> None:
        """Stop what an interruption left running; the server rolls back by itself."""
        with suppress(SQLAlchemyError), self.engine.connect() as other:
            other.execute(select(func.pg_terminate_backend(session)))

    def ensure_schema(self, connection: Connection) -> None:
        """Make the schema unless it is there, which needs no right to create one."""
        if self.address.schema_name not in inspect(connection).get_schema_names():
            connection.execute(CreateSchema(self.address.schema_name))

    def bulk_load(self, connection: Connection, target: Table, blocks: Iterable[bytes]) -> int:
        """COPY from this client; frozen, as the table is of this transaction."""
        return _copy(connection, target, blocks, sql.SQL("(FREEZE)"))

    def bulk_update(self, connection: Connection, lines: Iterable[bytes]) -> Stamped:
        """One prepared UPDATE … FROM arrays: one new version of each row."""
        given = read_given(lines)
        if not given.inputs:
            return Stamped(0, 0)
        if not connection.in_transaction():
            # The driver begins by itself; SQLAlchemy has to know that there is something to commit.
            connection.begin()
        raw = _raw(connection)
        if self._stamping.update(raw, given) == given.rows.shape[1]:
            return Stamped(given.inputs, 0)
        return Stamped(given.inputs, self._stamping.unknown(raw, given))

    @cached_property
    def _stamping(self) -> Stamping:
        return Stamping(_identifier(self.table(STAMPED)))

    def restore_stamps(self, connection: Connection) -> None:
        """Write the table anew in one pass, which keeps its foreign keys as they are.

        Stamped rows stay in their page, so the new pages hold the rows that they held before. Only
        where rows had to leave their page is the table written once more, in the order of its key.
        """
        target = self.table(STAMPED)
        name = _identifier(target)
        moved = self._rows_moved(connection)
        clear = sql.SQL(
            "ALTER TABLE {} ALTER COLUMN pol_start_ts TYPE timestamp(6) USING NULL, "
            "ALTER COLUMN pol_end_ts TYPE timestamp(6) USING NULL"
        ).format(name)
        order = sql.SQL("CLUSTER {} USING {}").format(
            name, sql.Identifier(str(target.primary_key.name))
        )
        forget = sql.SQL("ALTER TABLE {} SET WITHOUT CLUSTER").format(name)
        for statement in (clear, order, forget) if moved else (clear,):
            _raw(connection).execute(statement)

    def _rows_moved(self, connection: Connection) -> bool:
        """Whether an update since the load may have put a row into another page."""
        if _raw(connection).info.server_version < _TELLS_NEW_PAGES:
            return True
        table = _oid(connection, self.table(STAMPED))
        return bool(connection.scalar(select(func.pg_stat_get_tuples_newpage_updated(table))))

    def wear(self, connection: Connection) -> int | None:
        """Bytes of the heap, and every change that the server counted, also one rolled back."""
        table = _oid(connection, self.table(STAMPED))
        if table is None:
            return None
        found = connection.scalar(
            select(
                func.pg_relation_size(table)
                + func.pg_stat_get_tuples_inserted(table)
                + func.pg_stat_get_tuples_updated(table)
                + func.pg_stat_get_tuples_deleted(table)
            )
        )
        return None if found is None else int(found)

    def settle(self, names: Iterable[str]) -> None:
        """VACUUM and ANALYZE, two tables at a time, then a checkpoint where the user may ask."""
        with self.errors():
            with ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
                list(pool.map(self._vacuum, names))
            self.bring_to_disk()

    def bring_to_disk(self) -> None:
        """A checkpoint; a user without the right to ask for one gets the server's next one."""
        with self.errors(), suppress(psycopg.errors.InsufficientPrivilege):
            self._alone(sql.SQL("CHECKPOINT"))

    def _vacuum(self, name: str) -> None:
        target = _identifier(self.table(name))
        self._alone(sql.SQL("VACUUM (FREEZE, ANALYZE) {}").format(target))

    def _alone(self, statement: sql.SQL | sql.Composed) -> None:
        """Run what no transaction may hold."""
        engine = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            _raw(connection).execute(statement)

    def now(self) -> ColumnElement[datetime]:
        """`clock_timestamp() AT TIME ZONE 'UTC'`."""
        return func.timezone(literal_column("'UTC'"), func.clock_timestamp())

    def jdbc(self) -> dict[str, str]:
        """The options of TLS have the same names in libpq and in the Java driver."""
        address = self.address
        return {
            "url": f"jdbc:postgresql://{address.host}:{address.port}/{address.database}",
            "driver": "org.postgresql.Driver",
            "user": address.user,
            **({"password": address.password.get_secret_value()} if address.password else {}),
            **{name: value for name, value in address.options if name.startswith("ssl")},
        }

    def commit_time(self) -> ColumnElement[datetime]:
        """`pg_xact_commit_timestamp(xmin)`, which needs `track_commit_timestamp`."""
        committed = func.pg_xact_commit_timestamp(literal_column("xmin"))
        return func.timezone(literal_column("'UTC'"), committed)

    def observer(self) -> Observer:
        """Its system views."""
        return PostgreSQLObserver(self)

    def server(self) -> ServerInfo:
        """Version and the settings that decide about durability."""
        with self.reading() as connection:
            version = str(connection.scalar(select(func.current_setting("server_version"))))
            rows = connection.execute(
                text(
                    "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY(:names)"
                ),
                {"names": list(_SHOWN)},
            )
            found = {str(name): str(value) for name, value in rows}
        return ServerInfo("PostgreSQL", version, {n: found[n] for n in _SHOWN if n in found})


def _escaped(value: str) -> str:
    r"""A value among libpq's options, where a blank would end it."""
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _copy(
    connection: Connection, target: Table, blocks: Iterable[bytes], options: sql.Composable
) -> int:
    statement = sql.SQL("COPY {} ({}) FROM STDIN {}").format(
        _identifier(target), sql.SQL(", ").join(map(sql.Identifier, target.columns.keys())), options
    )
    with _raw(connection).cursor() as cursor:
        with cursor.copy(statement) as copy:
            for block in blocks:
                copy.write(block)
        return cursor.rowcount


def _oid(connection: Connection, target: Table) -> int | None:
    name = _identifier(target).as_string(_raw(connection))
    # By way of the number: the counters take no other type.
    found = connection.scalar(select(cast(cast(func.to_regclass(name), OID), BigInteger)))
    return None if found is None else int(found)


def _identifier(target: Table) -> sql.Identifier:
    return sql.Identifier(*([target.schema] if target.schema else []), target.name)


def _raw(connection: Connection) -> psycopg.Connection[tuple[object, ...]]:
    raw = connection.connection.driver_connection
    if not isinstance(raw, psycopg.Connection):
        raise TypeError("the engine is not one of psycopg's")
    return raw


def _is_cut_off(connection: Connection, error: BaseException) -> bool:
    """Whether a statement may still run on the server that nobody waits for any more."""
    if connection.invalidated or connection.closed:
        # SQLAlchemy gives a connection up at once where Ctrl-C and the like cut a statement short.
        return not isinstance(error, Exception)
    return _raw(connection).info.transaction_status is psycopg.pq.TransactionStatus.ACTIVE
