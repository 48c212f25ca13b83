"""PostgreSQL, by psycopg 3."""

import logging
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, ClassVar

import psycopg
from psycopg import sql
from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    and_,
    case,
    create_engine,
    func,
    inspect,
    literal_column,
    or_,
    select,
    text,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateSchema, CreateTable

from espbench.errors import ServiceError
from schema.contract import Database, ServerInfo, Stamped
from schema.tables import STAMPED, given_stamps, same_line, unknown_lines

# The driver's remarks about errors that we report ourselves.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_CONNECT_TIMEOUT_S = 10
_LOCK_TIMEOUT = "30s"
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
    knows_commit_times: ClassVar[bool] = True

    def make_engine(self) -> Engine:
        """Sessions in UTC; options of the URL such as `sslmode` go to libpq."""
        address = self.address
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
            "options": "-c TimeZone=UTC -c client_encoding=UTF8",
            **dict(address.options),
        }
        return create_engine(url, connect_args=arguments, poolclass=NullPool)

    def explain(self, error: Exception) -> ServiceError:
        """What PostgreSQL's errors mean to a user of `espbench load`."""
        origin = getattr(error, "orig", None) or error
        explained = super().explain(error)
        match origin:
            case psycopg.errors.LockNotAvailable():
                return ServiceError(
                    f"another session uses the tables of {self.address}", "end it and try again"
                )
            case psycopg.errors.DependentObjectsStillExist():
                return ServiceError(explained.cause, "drop what depends on the tables yourself")
            case psycopg.errors.InsufficientPrivilege():
                return ServiceError(explained.cause, "the user needs the right to do this")
            case psycopg.errors.InvalidPassword():
                return ServiceError(explained.cause, "check ESPBENCH_DATABASE__PASSWORD")
            case psycopg.errors.DiskFull():
                return ServiceError(explained.cause, "make room on the server's disk")
        return explained

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """One transaction, guarded by an advisory lock of the schema."""
        with self.errors(), self.engine.begin() as connection:
            session = _raw(connection).info.backend_pid
            try:
                self._prepare(connection)
                yield connection
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
        """COPY into a temporary table, then one UPDATE … FROM: one new version of each row.

        PostgreSQL computes new values in the order of the columns, so a start comes before an end.
        """
        given, target = given_stamps(), self.table(STAMPED)
        connection.execute(CreateTable(given, if_not_exists=True))
        # Empty already after a commit; a transaction may make several calls.
        connection.execute(given.delete())
        inputs = _copy(connection, given, lines, sql.SQL(""))
        keys, changed = connection.execute(_stamp(given, target, self.now())).one()
        if keys == changed:
            return Stamped(inputs, 0)
        return Stamped(inputs, int(connection.scalar(unknown_lines(given, target)) or 0))

    def restore_stamps(self, connection: Connection) -> None:
        """Write the table anew in one pass, then in the order of its key: two fast rewrites."""
        target = self.table(STAMPED)
        name = _identifier(target)
        clear = sql.SQL(
            "ALTER TABLE {} ALTER COLUMN pol_start_ts TYPE timestamp(6) USING NULL, "
            "ALTER COLUMN pol_end_ts TYPE timestamp(6) USING NULL"
        ).format(name)
        order = sql.SQL("CLUSTER {} USING {}").format(
            name, sql.Identifier(str(target.primary_key.name))
        )
        forget = sql.SQL("ALTER TABLE {} SET WITHOUT CLUSTER").format(name)
        for statement in (clear, order, forget):
            _raw(connection).execute(statement)

    def stamps_bytes(self, connection: Connection) -> int | None:
        """The heap alone: every new version of a row lengthens it, as its pages are full."""
        name = _identifier(self.table(STAMPED)).as_string(_raw(connection))
        found = connection.scalar(select(func.pg_relation_size(func.to_regclass(name))))
        return None if found is None else int(found)

    def settle(self, names: Iterable[str]) -> None:
        """VACUUM and ANALYZE, then a checkpoint where the user may ask for one."""
        engine = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        with self.errors(), engine.connect() as connection:
            raw = _raw(connection)
            for name in names:
                raw.execute(
                    sql.SQL("VACUUM (FREEZE, ANALYZE) {}").format(_identifier(self.table(name)))
                )
            # A user without the right to ask for a checkpoint gets the server's next one.
            with suppress(psycopg.errors.InsufficientPrivilege):
                raw.execute("CHECKPOINT")

    def now(self) -> ColumnElement[datetime]:
        """`clock_timestamp() AT TIME ZONE 'UTC'`."""
        return func.timezone(literal_column("'UTC'"), func.clock_timestamp())

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


def _stamp(given: Table, target: Table, now: ColumnElement[datetime]) -> Select[Any]:
    """The update, and how many keys were given and rows changed."""
    started, ended = given.c.pt_is_end == 0, given.c.pt_is_end == 1
    key = (given.c.pt_o_id, given.c.pt_ol_number, given.c.pt_pol_number)
    keys = (
        select(*key, func.bool_or(started).label("started"), func.bool_or(ended).label("ended"))
        .group_by(*key)
        .cte("keys")
    )
    start, end = target.c.pol_start_ts, target.c.pol_end_ts
    changed = (
        target.update()
        .values(
            pol_start_ts=case((keys.c.started, func.coalesce(start, now)), else_=start),
            pol_end_ts=case((keys.c.ended, func.coalesce(end, now)), else_=end),
        )
        .where(
            same_line(keys, target),
            or_(and_(keys.c.started, start.is_(None)), and_(keys.c.ended, end.is_(None))),
        )
        .returning(literal_column("1").label("one"))
        .cte("changed")
    )
    return select(
        select(func.count()).select_from(keys).scalar_subquery(),
        select(func.count()).select_from(changed).scalar_subquery(),
    )


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
