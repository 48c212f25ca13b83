"""Checks after a load: what must hold before a run may begin.

Row counts; those of TPC-C's consistency conditions (clause 3.3.2) that apply to the tables that are
left; what this benchmark adds; and foreign keys, where the database did not check them when they
were made.
"""

from sqlalchemy import Connection, Select, and_, case, exists, func, not_, or_, select

from espbench.errors import ServiceError
from schema.contract import Database
from schema.dataset import DataSet
from schema.tables import BUSINESS_TABLES


def check_tables(database: Database, connection: Connection, data: DataSet) -> dict[str, int]:
    """The number of rows of every table; raises `ServiceError` where a check fails."""
    counts = row_counts(database, connection)
    for name, count in counts.items():
        expected = data.tables[name].rows
        if count != expected:
            raise ServiceError(
                f"the table {name} holds {count:,} rows, its file {expected:,}", "load it again"
            )
    _require_none(connection, violation_queries(database))
    return counts


def check_foreign_keys(database: Database, connection: Connection) -> None:
    """Raises `ServiceError` where a row refers to nothing; fastest before other indexes exist."""
    _require_none(connection, foreign_key_queries(database))


def _require_none(connection: Connection, queries: dict[str, Select[int]]) -> None:
    for rule, violations in queries.items():
        _refuse(rule, int(connection.scalar(violations) or 0))


def _refuse(rule: str, found: int) -> None:
    if found:
        if True:
            raise ServiceError(
                f"the loaded data breaks a rule {found:,} times: {rule}",
                "make the data again: espbench datagen --force",
            )


def row_counts(database: Database, connection: Connection) -> dict[str, int]:
    """The number of rows of every table."""
    return {
        name: int(connection.scalar(select(func.count()).select_from(database.table(name))) or 0)
        for name in BUSINESS_TABLES
    }


def violation_queries(database: Database) -> dict[str, Select[int]]:
    """Rule to the query that counts where it is broken."""
    orders, lines = database.table("orders"), database.table("order_line")
    customers = database.table("customer")
    production = database.table("production_order_line")
    workplaces = database.table("workplace")
    per_order = (
        select(
            lines.c.ol_o_id,
            func.count().label("lines"),
            func.max(lines.c.ol_number).label("last"),
            func.count(lines.c.ol_delivery_d).label("delivered"),
            func.sum(case((lines.c.ol_delivery_d.is_not(None), lines.c.ol_amount))).label("amount"),
        )
        .group_by(lines.c.ol_o_id)
        .subquery()
    )
    of_orders = select(func.count()).select_from(
        orders.outerjoin(per_order, orders.c.o_id == per_order.c.ol_o_id)
    )
    used = select(production.c.pol_wp_id).distinct().subquery()
    return {
        "TPC-C 4 and 6: an order has o_ol_cnt lines, numbered from 1": of_orders.where(
            or_(
                per_order.c.lines.is_(None),
                per_order.c.lines != orders.c.o_ol_cnt,
                per_order.c["last"] != orders.c.o_ol_cnt,
            )
        ),
        "TPC-C 7: lines are delivered exactly where their order has a carrier": of_orders.where(
            per_order.c.delivered
            != case((orders.c.o_carrier_id.is_not(None), orders.c.o_ol_cnt), else_=0)
        ),
        "TPC-C 12: what was delivered cost what the customer paid": of_orders.where(
            and_(per_order.c.amount.is_not(None), per_order.c.amount != 0)
        ),
        "TPC-C 10 and 12: a customer's balance and payments cancel": select(func.count())
        .select_from(customers)
        .where(customers.c.c_balance + customers.c.c_ytd_payment != 0),
        "a production order line names a workplace that exists": select(func.count())
        .select_from(used)
        .where(not_(exists().where(workplaces.c.wp_id == used.c.pol_wp_id))),
    }


def foreign_key_queries(database: Database) -> dict[str, Select[int]]:
    """Foreign key to the query that counts rows which refer to nothing."""
    found = {}
    for name in BUSINESS_TABLES:
        table = database.table(name)
        for key in table.foreign_key_constraints:
            same = and_(*(element.parent == element.column for element in key.elements))
            joined = table.outerjoin(key.referred_table, same)
            lost = key.elements[0].column.is_(None)
            found[f"{key.name}: a row refers to one of {key.referred_table.name} that exists"] = (
                select(func.count()).select_from(joined).where(lost)
            )
    return found
