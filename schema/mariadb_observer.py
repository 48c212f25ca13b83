"""What MariaDB tells about itself: sizes, redo log, settings, plans."""

from sqlalchemy import bindparam, select, text

from schema.contract import Database, Observer, Plan
from schema.given import read_given
from schema.mariadb_stamps import Stamping
from schema.tables import BUSINESS_TABLES, PLACED, STAMPED

# Chosen by somebody: in a file, on the command line, by a statement, or by this session.
_SETTINGS = text(
    "SELECT variable_name, COALESCE(session_value, global_value) "
    "FROM information_schema.system_variables "
    "WHERE global_value_origin NOT IN ('COMPILE-TIME', 'AUTO') "
    "OR (session_value <> global_value AND variable_name NOT IN :passing) ORDER BY variable_name"
).bindparams(bindparam("passing", expanding=True))
# Of this session alone, and different in each.
_PASSING = (
    "ERROR_COUNT",
    "GTID_SEQ_NO",
    "INSERT_ID",
    "LAST_GTID",
    "LAST_INSERT_ID",
    "PSEUDO_THREAD_ID",
    "RAND_SEED1",
    "RAND_SEED2",
    "TIMESTAMP",
    "WARNING_COUNT",
)
_SIZES = text(
    "SELECT name, file_size FROM information_schema.innodb_sys_tablespaces WHERE name IN :names"
).bindparams(bindparam("names", expanding=True))


class MariaDBObserver(Observer):
    """Reads the information schema; MySQL has other names for parts of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def settings(self) -> dict[str, str]:
        """System variables that do not come from the program itself."""
        with self._database.reading() as connection:
            rows = connection.execute(_SETTINGS, {"passing": list(_PASSING)})
            return {str(name).lower(): str(value) for name, value in rows}

    def sizes(self) -> dict[str, int]:
        """The files of the tables."""
        schema = self._database.address.schema_name
        names = {f"{schema}/{name}": name for name in BUSINESS_TABLES}
        with self._database.reading() as connection:
            rows = connection.execute(_SIZES, {"names": list(names)})
            found = {names[str(name)]: int(size) for name, size in rows}
        return {name: found[name] for name in BUSINESS_TABLES if name in found}

    def log_bytes(self) -> int:
        """The log sequence number, which counts bytes; the binary log is not in it."""
        with self._database.reading() as connection:
            row = connection.execute(text("SHOW GLOBAL STATUS LIKE 'Innodb_lsn_current'")).one()
            return int(row[1])

    def plans(self, lines: bytes) -> list[Plan]:
        """EXPLAIN, without carrying anything out."""
        lookup = str(select(self._database.table(PLACED)).compile(self._database.engine))
        with self._database.reading() as connection:
            rows = connection.exec_driver_sql(f"EXPLAIN {lookup}").mappings()
            found = [f"{name}: {value}" for row in rows for name, value in row.items() if value]
            read = Plan("query 4 reads the downtimes", lookup, ", ".join(found))
            stamping = Stamping(self._database.quoted(STAMPED))
            statement, plan = stamping.plan(connection, read_given([lines]))
        return [read, Plan("query 5 stamps production order lines", statement, plan)]
