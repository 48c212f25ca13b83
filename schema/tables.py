"""The tables of the benchmark, once, for every database.

Timestamps hold UTC without a zone, with microseconds.
"""

from datetime import datetime

from sqlalchemy import (
    CHAR,
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
)
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.types import TypeEngine

# The business data, in an order in which a table comes after those it refers to.
BUSINESS_TABLES = (
    "item",
    "customer",
    "orders",
    "order_line",
    "production_order",
    "production_order_line",
    "workplace",
)
# Ours beside them: which data set is loaded, and the downtimes as its file has them.
MARKER = "espbench_load"
PLAN = "espbench_downtime"
ALL_TABLES = (*BUSINESS_TABLES, PLAN, MARKER)
# What runs write into, and what is written before each of them.
STAMPED, PLACED = "production_order_line", "workplace"

_NAMES = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
}


def timestamp() -> TypeEngine[datetime]:
    """UTC without a zone, with microseconds."""
    return (
        DateTime()
        .with_variant(postgresql.TIMESTAMP(precision=6), "postgresql")
        .with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
    )


def tables(schema_name: str) -> MetaData:
    """All tables in this schema, with primary and foreign keys."""
    metadata = MetaData(schema=schema_name, naming_convention=_NAMES)
    _customers_and_items(metadata)
    _orders(metadata)
    _production(metadata)
    _workplaces(metadata)
    _marker(metadata)
    return metadata


def table(metadata: MetaData, name: str) -> Table:
    """A table by its bare name."""
    return metadata.tables[f"{metadata.schema}.{name}"]


def without_constraints(full: Table, *, primary_key: bool = False) -> Table:
    """The same columns in a table without keys, or with the primary one alone.

    What a bulk load fills fastest depends on how the database keeps its rows.
    """
    columns = [
        Column(
            c.name,
            c.type,
            nullable=c.nullable,
            primary_key=primary_key and c.primary_key,
            autoincrement=False,
        )
        for c in full.columns
    ]
    return Table(full.name, MetaData(schema=full.schema), *columns, **full.dialect_kwargs)


def _key(name: str, *foreign: ForeignKey) -> Column[int]:
    return Column(name, Integer, *foreign, primary_key=True, autoincrement=False)


def _number(name: str, *foreign: ForeignKey, null: bool = False) -> Column[int]:
    return Column(name, Integer, *foreign, nullable=null)


def _text(name: str, length: int) -> Column[str]:
    return Column(name, String(length), nullable=False)


def _fixed(name: str, length: int) -> Column[str]:
    return Column(name, CHAR(length), nullable=False)


def _time(name: str, *, null: bool = False) -> Column[datetime]:
    return Column(name, timestamp(), nullable=null)


def _customers_and_items(metadata: MetaData) -> None:
    Table(
        "item",
        metadata,
        _key("i_id"),
        _number("i_im_id"),
        _text("i_name", 24),
        Column("i_price", Numeric(5, 2), nullable=False),
        _text("i_data", 50),
    )
    Table(
        "customer",
        metadata,
        _key("c_id"),
        _text("c_first", 16),
        _fixed("c_middle", 2),
        _text("c_last", 16),
        _text("c_street_1", 20),
        _text("c_street_2", 20),
        _text("c_city", 20),
        _fixed("c_state", 2),
        _fixed("c_zip", 9),
        _fixed("c_phone", 16),
        _time("c_since"),
        _fixed("c_credit", 2),
        Column("c_credit_lim", Numeric(12, 2), nullable=False),
        Column("c_discount", Numeric(4, 4), nullable=False),
        Column("c_balance", Numeric(12, 2), nullable=False),
        Column("c_ytd_payment", Numeric(12, 2), nullable=False),
        _number("c_payment_cnt"),
        _number("c_delivery_cnt"),
        _text("c_data", 500),
    )


def _orders(metadata: MetaData) -> None:
    Table(
        "orders",
        metadata,
        _key("o_id"),
        _number("o_c_id", ForeignKey("customer.c_id")),
        _time("o_entry_d"),
        _number("o_carrier_id", null=True),
        _number("o_ol_cnt"),
        _number("o_all_local"),
    )
    Table(
        "order_line",
        metadata,
        _key("ol_o_id", ForeignKey("orders.o_id")),
        _key("ol_number"),
        _number("ol_i_id", ForeignKey("item.i_id")),
        _number("ol_supply_w_id"),
        _time("ol_delivery_d", null=True),
        _number("ol_quantity"),
        Column("ol_amount", Numeric(6, 2), nullable=False),
        _fixed("ol_dist_info", 24),
    )


def _production(metadata: MetaData) -> None:
    Table(
        "production_order",
        metadata,
        _key("po_o_id"),
        _key("po_ol_number"),
        _time("po_date"),
        ForeignKeyConstraint(
            ["po_o_id", "po_ol_number"], ["order_line.ol_o_id", "order_line.ol_number"]
        ),
    )
    Table(
        "production_order_line",
        metadata,
        _key("pol_o_id"),
        _key("pol_ol_number"),
        _key("pol_number"),
        _number("pol_i_id", ForeignKey("item.i_id")),
        _number("pol_quantity"),
        # A workplace, without a foreign key: a workplace is a key of several rows.
        _number("pol_wp_id"),
        _time("pol_start_ts", null=True),
        _time("pol_end_ts", null=True),
        ForeignKeyConstraint(
            ["pol_o_id", "pol_ol_number"],
            ["production_order.po_o_id", "production_order.po_ol_number"],
        ),
        # Room for one stamped version of every row in its own page: query 5's updates then touch
        # neither another page nor the index (52 bytes a row, 68 with both stamps, 8,168 a page).
        postgresql_with={"fillfactor": 42},
    )


def _workplaces(metadata: MetaData) -> None:
    for name in ("workplace", PLAN):
        Table(
            name,
            metadata,
            _key("wp_id"),
            _key("wp_dt_id"),
            _time("wp_downtime_start"),
            _time("wp_downtime_end"),
        )


def _marker(metadata: MetaData) -> None:
    Table(
        MARKER,
        metadata,
        _key("id"),
        _text("format", 40),
        _text("state", 10),
        _fixed("tables_sha256", 64),
        _number("scale"),
        Column("seed", BigInteger, nullable=False),
        _text("downtimes", 10),
        _number("nominal_run_s", null=True),
        _time("loaded_at", null=True),
        Column("pristine_bytes", BigInteger, nullable=True),
        _time("run_start", null=True),
        Column("run_duration_us", BigInteger, nullable=True),
    )
