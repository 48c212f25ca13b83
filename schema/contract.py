"""The contract of a database: what the benchmark needs from it, and nothing more.

A plug-in is one subclass of `Database` in a module of its own, named in `schema.registry`. The
tables, the marker, the load, the reset and the checks are the same for all of them; they speak
SQLAlchemy and call a method of this class where databases really differ. `docs/databases.md` tells
how to add one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import ClassVar, Self

from sqlalchemy import ColumnElement, Connection, Engine, MetaData, Table
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from espbench.errors import ServiceError
from espbench.services.endpoints import DatabaseAddress
from schema.tables import table, tables


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a report tells about the server."""

    product: str
    version: str
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """How the server carries out a statement of ours, in its own words."""

    what: str
    statement: str
    plan: str


class Observer(ABC):
    """What a DBA asks a server about itself; every answer costs milliseconds."""

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """All settings that are not the server's defaults, as our sessions see them."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Bytes on disk of each of the benchmark's tables, with indexes."""

    @abstractmethod
    def log_bytes(self) -> int:
        """Bytes of redo log (WAL) written since the server was made; only differences count."""

    @abstractmethod
    def plans(self, lines: bytes) -> list[Plan]:
        """The plans of what queries 4 and 5 ask, for these lines of production times.

        Nothing is changed.
        """


@dataclass(frozen=True, slots=True)
class Stamped:
    """What a bulk update was given: `inputs` production times, `unknown` of them of no row."""

    inputs: int
    unknown: int


def isolated(level: str | None) -> dict[str, str]:
    """The argument of an engine whose transactions have this isolation level, if one is asked."""
    return {"isolation_level": level.upper()} if level else {}


class Database(ABC):
    """One database, reached by one address, with the benchmark's tables in one schema.

    Every method raises `ServiceError` where the database fails. Close it, or use it in `with`.
    """

    kind: ClassVar[str]
    # Whether creating and dropping tables can be rolled back. Where not, the marker alone says
    # that a load is incomplete.
    transactional_ddl: ClassVar[bool]
    # Whether rows lie in their primary key, which a load then needs from the beginning.
    keys_before_load: ClassVar[bool]
    # Whether making a foreign key proves that it holds. Where not, the checks ask.
    checks_new_foreign_keys: ClassVar[bool]
    # Whether a freshly loaded table lies as `restore_stamps` leaves it. Where not, the load calls
    # that as well, so that the first run finds what every later one finds.
    load_is_pristine: ClassVar[bool]
    # What the driver raises where it is used without SQLAlchemy.
    driver_error: ClassVar[type[Exception]]

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address
        self.metadata: MetaData = tables(address.schema_name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections."""
        if "engine" in self.__dict__:
            self.engine.dispose()

    @cached_property
    def engine(self) -> Engine:
        """The connections; none is made before it is needed."""
        return self.make_engine()

    def table(self, name: str) -> Table:
        """One of the benchmark's tables."""
        return table(self.metadata, name)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that changes nothing."""
        with self.errors(), self.engine.connect() as connection:
            yield connection
            connection.rollback()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what the driver raises into `ServiceError`."""
        try:
            yield
        except (SQLAlchemyError, self.driver_error) as error:
            raise self.explain(error) from error

    def explain(self, error: Exception) -> ServiceError:
        """Cause and remedy of a failure; a plug-in may know more."""
        origin = error.orig if isinstance(error, DBAPIError) and error.orig else error
        first = (str(origin).strip().splitlines() or [type(origin).__name__])[0]
        return ServiceError(
            f"the database {self.address} failed: {first}", "see its log; is it running?"
        )

    @abstractmethod
    def make_engine(self) -> Engine:
        """An engine whose sessions are in UTC and give up soon where nobody answers."""

    @abstractmethod
    def changing(self) -> AbstractContextManager[Connection]:
        """A session that may change tables, alone.

        Refuses (`ServiceError`) while another session is in it for the same schema. Leaving it
        commits; an exception undoes what can be undone, and ends a statement that still runs.
        """

    @abstractmethod
    def ensure_schema(self, connection: Connection) -> None:
        """Make the schema unless it is there."""

    def dependents(self, connection: Connection, names: Iterable[str]) -> list[str]:  # noqa: ARG002 - for plug-ins
        """What others made that would break if these tables were dropped, for people to read.

        Empty as well where the database itself refuses to drop such tables.
        """
        return []

    @abstractmethod
    def bulk_load(self, connection: Connection, target: Table, blocks: Iterable[bytes]) -> int:
        r"""Fill a table, created in this session, from blocks of tab-separated text with `\N`.

        Blocks need not end with lines. Returns the number of rows.
        """

    @abstractmethod
    def bulk_update(self, connection: Connection, lines: Iterable[bytes]) -> Stamped:
        """Stamp production order lines by lines of the production-times stream, in bulk.

        The lines are the stream's own (`pt_o_id`, `pt_ol_number`, `pt_pol_number`, `pt_is_end`,
        tab separated, each ended by LF), in blocks that need not end with lines. Sets pol_start_ts
        (0) or pol_end_ts (1) to `now()` of the moment the update runs, where it is still null: the
        same lines again change nothing. No end comes before a start of the same call. The caller
        commits, and may use a connection for many calls.
        """

    @abstractmethod
    def restore_stamps(self, connection: Connection) -> None:
        """Set both stamps of every production order line to null, as if never updated.

        Afterwards every page holds the rows that it held after the load, without older versions;
        or, where updates moved rows to other pages, the rows lie in the order of their keys.
        """

    @abstractmethod
    def wear(self, connection: Connection) -> int | None:
        """A number that is another one after updates of production_order_line, also undone ones.

        None where updates that were undone leave nothing behind.
        """

    @abstractmethod
    def settle(self, names: Iterable[str]) -> None:
        """Bring tables into the state that every run starts from: analysed, clean, on disk."""

    def bring_to_disk(self) -> None:  # noqa: B027 - a database may well have no use for it
        """Have the server write what it was given so far, beside other work; no need to do it."""

    @abstractmethod
    def now(self) -> ColumnElement[datetime]:
        """The current time when the row is written: UTC, microseconds, not the transaction's."""

    def quoted(self, name: str) -> str:
        """A table's name as it stands in a statement of this database."""
        prepared = self.engine.dialect.identifier_preparer
        return str(prepared.format_table(self.table(name)))

    @abstractmethod
    def jdbc(self) -> dict[str, str]:
        """How Java reaches it: `url`, `driver`, `user`, `password` and what TLS needs.

        Options of the address that this plug-in's Java driver does not know are left out.
        """

    def commit_time(self) -> ColumnElement[datetime] | None:
        """When the last change of a row was committed (UTC); None where the database cannot tell.

        For a select from one table.
        """
        return None

    def observer(self) -> Observer | None:
        """What tells sizes, log bytes, settings and plans; None where nobody has written it."""
        return None

    @abstractmethod
    def server(self) -> ServerInfo:
        """Product, version and the settings that decide about durability and speed."""
