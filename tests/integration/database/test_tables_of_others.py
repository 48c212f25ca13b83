"""A load touches nothing that it did not make."""

import pytest
from sqlalchemy.schema import CreateSchema

from espbench.errors import ServiceError, UsageError
from schema.contract import Database
from schema.dataset import DataSet
from schema.load import is_loaded, load
from schema.marker import require_loaded
from tests.integration.database.given import DURATION_S, START_MS, filled, in_schema


def made_by_others(database: Database, *statements: str) -> None:
    """The schema as somebody else uses it."""
    with database.engine.begin() as connection:
        connection.execute(CreateSchema(database.address.schema_name))
        for statement in statements:
            connection.execute(in_schema(database, statement))


def test_tables_of_others_are_refused_and_kept(database: Database, data: DataSet) -> None:
    made_by_others(
        database,
        "CREATE TABLE SCHEMA.orders (mine text)",
        "CREATE TABLE SCHEMA.precious (mine text)",
        "INSERT INTO SCHEMA.orders VALUES ('money')",
    )
    with pytest.raises(UsageError, match="did not make: orders"):
        filled(database, data)
    with database.engine.connect() as connection:
        assert connection.scalar(in_schema(database, "SELECT mine FROM SCHEMA.orders")) == "money"
    load(database, data, start_ms=START_MS, duration_s=DURATION_S, overwrite=True)
    assert is_loaded(database, data)
    with database.engine.connect() as connection:
        assert connection.scalar(in_schema(database, "SELECT count(*) FROM SCHEMA.precious")) == 0


def test_a_foreign_table_with_the_markers_name_is_refused(
    database: Database, data: DataSet
) -> None:
    made_by_others(database, "CREATE TABLE SCHEMA.espbench_load (id int)")
    with pytest.raises(UsageError, match="not a marker"):
        filled(database, data)
    with pytest.raises(UsageError, match="not a marker"):
        require_loaded(database)
    load(database, data, start_ms=START_MS, duration_s=DURATION_S, overwrite=True)
    assert is_loaded(database, data)


def test_nothing_that_depends_on_a_table_is_dropped(
    database: Database, data: DataSet, other_data: DataSet
) -> None:
    filled(database, data)
    with database.engine.begin() as connection:
        connection.execute(
            in_schema(database, "CREATE VIEW SCHEMA.v AS SELECT i_id FROM SCHEMA.item")
        )
    with pytest.raises(ServiceError, match="depend") as caught:
        filled(database, other_data)
    assert "yourself" in caught.value.remedy
    assert is_loaded(database, data)


def test_a_view_of_a_tables_name_is_left_alone(database: Database, data: DataSet) -> None:
    made_by_others(database, "CREATE VIEW SCHEMA.orders AS SELECT 1 AS theirs")
    with pytest.raises(UsageError, match="did not make: orders"):
        filled(database, data)
    with pytest.raises(UsageError, match="are views, and only tables are dropped"):
        load(database, data, start_ms=START_MS, duration_s=DURATION_S, overwrite=True)
    with database.engine.connect() as connection:
        assert connection.scalar(in_schema(database, "SELECT theirs FROM SCHEMA.orders")) == 1


def test_nothing_that_refers_to_a_table_is_broken(
    database: Database, data: DataSet, other_data: DataSet
) -> None:
    filled(database, data)
    with database.engine.begin() as connection:
        connection.execute(
            in_schema(
                database,
                "CREATE TABLE SCHEMA.theirs "
                "(id INT, FOREIGN KEY (id) REFERENCES SCHEMA.item (i_id))",
            )
        )
    with pytest.raises(ServiceError, match="depend"):
        filled(database, other_data)
    assert is_loaded(database, data)
