"""What a load reads and refuses before any database has a say."""

import hashlib
from pathlib import Path

import pytest
from pydantic import SecretStr

from espbench.errors import ConfigError, InputError, ServiceError
from espbench.services.endpoints import DatabaseAddress
from schema import dataset
from schema.dataset import TableFile
from schema.marker import COMPLETE, LOADING, Marker, accept
from schema.production_times import check_production_times
from schema.registry import open_database

ADDRESS = DatabaseAddress(
    "postgresql", "127.0.0.1", 1, "me", "bench", password=SecretStr("very-secret")
)


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def lines_and_times(count: int) -> tuple[list[str], list[str]]:
    keys = [f"{1_010_001 + n // 7}\t{n % 7 + 1}\t1" for n in range(count)]
    times = [f"{key}\t{end}" for key in keys for end in (0, 1)]
    return [f"{key}\t5\t1\t3\t\\N\t\\N" for key in keys], times


@pytest.mark.parametrize("count", [1, 1_000, 250_001])
def test_two_production_times_per_line_pass(tmp_path: Path, count: int) -> None:
    lines, times = lines_and_times(count)
    check_production_times(write(tmp_path / "pol", lines), write(tmp_path / "pt", times))


@pytest.mark.parametrize(
    "damage",
    [
        lambda times: times[:-1],
        lambda times: times[:-2],
        lambda times: times[2:],
        lambda times: [*times, times[-1]],
        lambda times: [*times, "9\t9\t1\t0", "9\t9\t1\t1"],
        lambda times: [times[1], times[0], *times[2:]],
        lambda times: [times[0], times[0], *times[2:]],
        lambda times: [times[0], times[1][:-1] + "2", *times[2:]],
        lambda times: [*times[:10], *times[12:14], *times[10:12], *times[14:]],
    ],
)
def test_any_other_number_or_order_is_refused(tmp_path: Path, damage: object) -> None:
    lines, times = lines_and_times(1_000)
    assert callable(damage)
    with pytest.raises(InputError, match="exactly a start and an end"):
        check_production_times(
            write(tmp_path / "pol", lines), write(tmp_path / "pt", damage(times))
        )


@pytest.mark.parametrize("line", ["1\t2", "a\tb\tc\td", "1\t2\t3\t4\t5"])
def test_foreign_text_is_refused(tmp_path: Path, line: str) -> None:
    lines, times = lines_and_times(10)
    with pytest.raises(InputError, match="cannot read"):
        check_production_times(
            write(tmp_path / "pol", lines), write(tmp_path / "pt", [*times, line])
        )


def test_a_file_comes_in_blocks_and_its_sum_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "BLOCK_BYTES", 10)
    data = b"0123456789" * 7 + b"end"
    path = tmp_path / "item.csv"
    path.write_bytes(data)
    good = TableFile(path, 1, hashlib.sha256(data).hexdigest())
    assert [len(block) for block in good.blocks()] == [10] * 7 + [3]
    with pytest.raises(InputError, match="damaged"):
        list(TableFile(path, 1, "0" * 64).blocks())
    with pytest.raises(InputError, match="cannot read"):
        list(TableFile(tmp_path / "none", 1, "0" * 64).blocks())


def marker(state: str) -> Marker:
    return Marker(state, "a" * 64, 3, 2021, "run", 100, None, None, None, None)


def test_only_a_complete_load_of_the_right_data_is_accepted() -> None:
    database = open_database(ADDRESS)
    with pytest.raises(ServiceError, match="no data is loaded"):
        accept(database, None)
    with pytest.raises(ServiceError, match="cut short"):
        accept(database, marker(LOADING))
    with pytest.raises(ServiceError, match="another data set"):
        accept(database, marker(COMPLETE), "b" * 64)
    assert accept(database, marker(COMPLETE), "a" * 64) == marker(COMPLETE)


def test_an_unknown_kind_of_database_is_refused() -> None:
    other = DatabaseAddress("oracle", "127.0.0.1", 1521, "me", "bench")
    with pytest.raises(ConfigError, match="no support for oracle"):
        open_database(other)


def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    with open_database(ADDRESS) as database, pytest.raises(ServiceError) as caught:
        database.server()
    assert "postgresql://me@127.0.0.1:1/bench" in caught.value.line()
    assert "very-secret" not in caught.value.line()
    assert "very-secret" not in repr(database.engine)
