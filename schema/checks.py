"""Checks after a load: what must hold before a run may begin.

Row counts; those of TPC-C's consistency conditions (clause 3.3.2) that apply to the tables that are
left; what this benchmark adds; and foreign keys, where the database did not check them when they
were made.
"""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    case,
    exists,
    func,
    not_,
    or_,
    select,
)

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
    _refuse(connection, order_rules(database))
    for rule in other_rules(database):
        _refuse(connection, rule)
    return counts


def check_foreign_keys(database: Database, connection: Connection) -> None:
    """Raises `ServiceError` where a row refers to nothing; fastest before other indexes exist."""
    for rule in foreign_key_rules(database):
        _refuse(connection, rule)


def _refuse(connection: Connection, rules: Select[Any]) -> None:
    """Raise for the first rule that is broken: each column counts where, and is named by it."""
    for rule, found in connection.execute(rules).mappings().one().items():
        if found:
            raise ServiceError(
                f"the loaded data breaks a rule {int(found):,} times: {rule}",
                "make the data again: espbench datagen --force",
            )


def row_counts(database: Database, connection: Connection) -> dict[str, int]:
    """The number of rows of every table."""
    return {
        name: int(connection.scalar(select(func.count()).select_from(database.table(name))) or 0)
        for name in BUSINESS_TABLES
    }


def order_rules(database: Database) -> Select[Any]:
    """What holds between orders and their lines, in one pass over both."""
    orders, lines = database.table("orders"), database.table("order_line")
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
    numbered = or_(
        per_order.c.lines.is_(None),
        per_order.c.lines != orders.c.o_ol_cnt,
        per_order.c["last"] != orders.c.o_ol_cnt,
    )
    delivered = per_order.c.delivered != case(
        (orders.c.o_carrier_id.is_not(None), orders.c.o_ol_cnt), else_=0
    )
    paid = and_(per_order.c.amount.is_not(None), per_order.c.amount != 0)
    return select(
        _where(numbered, "TPC-C 4 and 6: an order has o_ol_cnt lines, numbered from 1"),
        _where(delivered, "TPC-C 7: lines are delivered if their order has a carrier"),
        _where(paid, "TPC-C 12: what was delivered cost what was paid"),
    ).select_from(orders.outerjoin(per_order, orders.c.o_id == per_order.c.ol_o_id))


def other_rules(database: Database) -> list[Select[Any]]:
    """What holds for customers and production order lines."""
    customers, workplaces = database.table("customer"), database.table("workplace")
    production = database.table("production_order_line")
    unbalanced = customers.c.c_balance + customers.c.c_ytd_payment != 0
    used = select(production.c.pol_wp_id).distinct().subquery()
    missing = not_(exists().where(workplaces.c.wp_id == used.c.pol_wp_id))
    return [
        select(_where(unbalanced, "TPC-C 10 and 12: balance and payments cancel")),
        select(_where(missing, "a line names a workplace that exists")).select_from(used),
    ]


def foreign_key_rules(database: Database) -> list[Select[Any]]:
    """Every row refers to one that exists; each rule has its foreign key's name."""
    rules = []
    for name in BUSINESS_TABLES:
        table = database.table(name)
        for key in table.foreign_key_constraints:
            same = and_(*(element.parent == element.column for element in key.elements))
            joined = table.outerjoin(key.referred_table, same)
            lost = key.elements[0].column.is_(None)
            rules.append(select(func.count().label(str(key.name))).select_from(joined).where(lost))
    return rules


def _where(broken: ColumnElement[bool], rule: str) -> ColumnElement[Any]:
    """In how many rows a rule is broken, under its name (63 characters at most)."""
    return func.count(case((broken, 1))).label(rule)
