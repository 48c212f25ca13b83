"""A matrix file: what is allowed, and which cells it makes."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from espbench.config import DatabaseSettings, Settings
from espbench.errors import ConfigError, EspbenchError
from espbench.names import find_query
from espbench.runs.estimate import OVERHEAD_S, estimate_all
from espbench.runs.matrix_plan import (
    CONFIGURED,
    FULL,
    MatrixFile,
    cell_settings,
    flat_settings,
    plan,
    read_matrix,
    replace_axes,
)


def read(tmp_path: Path, text: str) -> MatrixFile:
    path = tmp_path / "matrix.yml"
    path.write_text(text, encoding="utf-8")
    return read_matrix(path)


def test_the_cells_are_the_product_of_the_axes(tmp_path: Path) -> None:
    asked = read(
        tmp_path,
        """
        queries: [q1, 3]
        rates: [1000, 0.5]
        engines: [micro-batch, real-time]
        databases: [postgresql, mariadb]
        profiles: [constant, "cosine:period=10,amplitude=500"]
        repetitions: 3
        """,
    )
    cells = plan(asked, Settings())
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 2 * 2 * 3
    assert [cell.repetition for cell in cells] == sorted(cell.repetition for cell in cells)
    assert {cell.query for cell in cells} == {"check-sensor-status", "identify-errors"}
    chosen = next(cell for cell in cells if cell.database == "mariadb" and cell.rate == 0.5)
    settings = cell_settings(asked, Settings(), chosen)
    assert settings.load.rate == 0.5
    assert settings.database.url == "mariadb"
    assert settings.queries == chosen.query
    assert settings.spark.engine == chosen.engine
    assert settings.load.profile == chosen.profile


def test_an_axis_that_is_left_out_is_as_configured(tmp_path: Path) -> None:
    base = Settings(queries="q3,q5")
    cells = plan(read(tmp_path, "repetitions: 2"), base)
    assert [(cell.query, cell.repetition) for cell in cells] == [
        ("identify-errors", 1),
        ("persist-processing-times", 1),
        ("identify-errors", 2),
        ("persist-processing-times", 2),
    ]
    assert {cell.group[1:] for cell in cells} == {(1000.0, "auto", CONFIGURED, "constant")}
    assert cell_settings(MatrixFile(), base, cells[0]).database == base.database


def test_a_random_order_is_the_seeds(tmp_path: Path) -> None:
    text = "{queries: 'q1,q2,q3,q4,q5', repetitions: 4, order: random, seed: %d}"
    orders = [plan(read(tmp_path, text % seed), Settings()) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert set(orders[0]) == set(orders[2])


def test_the_experiment_of_2021() -> None:
    base = Settings().model_copy(update={})
    cells = plan(FULL, base)
    assert len(cells) == 5 * 2 * 3
    assert {cell.rate for cell in cells} == {1_000, 10_000}
    assert len({cell.query for cell in cells}) == 5
    assert flat_settings(FULL) == {"data.scale": 3, "load.duration": 300}


def test_options_replace_axes() -> None:
    asked = replace_axes(
        MatrixFile(queries=["q1"], rates=[1], databases={"a": {"url": "mariadb"}}),
        {"queries": "q3,4", "load.rate": 7, "spark.engine": None, "database.url": "postgresql"},
    )
    cells = plan(asked, Settings())
    assert [cell.query for cell in cells] == ["identify-errors", "check-machine-power"]
    assert {(cell.rate, cell.database) for cell in cells} == {(7.0, CONFIGURED)}


def test_a_database_of_the_matrix_replaces_the_configured_one(tmp_path: Path) -> None:
    url = "postgresql://me@elsewhere:5432/bench"
    asked = read(
        tmp_path,
        f"databases: {{far: {{url: '{url}'}}, near: {{url: mariadb, schema_name: other}}}}",
    )
    base = Settings(database=DatabaseSettings(port=5555, password=SecretStr("secret")))
    far, near = (cell_settings(asked, base, cell) for cell in plan(asked, base)[:2])
    assert (far.database.url, far.database.port) == (url, 0)
    assert far.database.password == SecretStr("secret")
    assert near.database.schema_name == "other"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("speeds: [1]", "unknown key speeds"),
        ("rates: [1000, -1]", "rates.1 = -1"),
        ("rates: []", "rates = []"),
        ("rates: [5, 5]", "rates"),
        ("queries: [q9]", "q9"),
        ("engines: [warp]", "engines.0 = 'warp'"),
        ("repetitions: 0", "repetitions = 0"),
        ("order: sideways", "order = 'sideways'"),
        ("databases: {a: {hostname: x}}", "unknown key databases.a.hostname"),
        ("databases: {a: {port: 99999}}", "databases.a.port = 99999"),
        ("databases: {a: {password: geheim}}", "databases.a"),
        ("databases: {a: {url: 'postgresql://me:geheim@db/x'}}", "databases.a"),
        ("settings: {database: {password: geheim}}", "settings.database"),
        ("- just a list", "not a mapping"),
        ("rates: [", "not YAML"),
    ],
)
def test_what_is_wrong_is_named_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(EspbenchError) as caught:
        read(tmp_path, text)
    assert said in caught.value.line()
    assert "geheim" not in caught.value.line()
    assert caught.value.exit_code == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.yml"):
        read_matrix(tmp_path / "nothing.yml")


def test_the_estimate_is_the_sum_of_the_cells() -> None:
    settings = Settings()
    cells: list[Any] = [
        (settings, find_query("q3"), 1_000.0),
        (settings, find_query("q4"), 10_000.0),
    ]
    seconds, size = estimate_all(cells)
    assert seconds == 2 * (settings.load.duration + settings.rehearsal_s + OVERHEAD_S)
    # Query 4 reads two streams, at ten times the rate.
    assert size == 21 * estimate_all(cells[:1])[1]
