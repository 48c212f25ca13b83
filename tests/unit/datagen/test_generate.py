import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from datagen import generate as module
from datagen import plan
from datagen.generate import generate
from datagen.manifest import FILES, NAME, TABLES, Manifest, read_manifest, table_file
from datagen.parameters import Parameters
from espbench.errors import InputError, MachineError, UsageError

SMALL = Parameters(scale=2, seed=11, districts=3, customers=60, items=500, sensor_rows=26_001)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    generate(SMALL, directory, workers_count=1)
    return directory


def sums(directory: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.iterdir())
        if not path.name.startswith(".")
    }


def test_the_files_are_those_of_the_manifest(made: Path) -> None:
    manifest = read_manifest(made)
    assert set(sums(made)) == {*FILES, NAME}
    for entry in manifest.files:
        data = (made / entry.name).read_bytes()
        assert entry.bytes == len(data)
        assert entry.rows == data.count(b"\n")
        assert entry.sha256 == hashlib.sha256(data).hexdigest()
        assert data.endswith(b"\n")


def test_row_counts(made: Path) -> None:
    rows = {entry.name: entry.rows for entry in read_manifest(made).files}
    assert rows["item.csv"] == 500
    assert rows["customer.csv"] == rows["orders.csv"] == 2 * 3 * 60
    lines = rows["order_line.csv"]
    assert rows["production_order.csv"] == rows["production_order_line.csv"] == lines
    assert rows["production_times.csv"] == 2 * lines
    assert rows["sensor-1.csv"] == rows["sensor-2.csv"] == 26_001


@pytest.mark.parametrize(
    ("table", "width"), [("item", 1), ("customer", 1), ("order_line", 2), ("workplace", 2)]
)
def test_rows_lie_in_the_order_of_the_primary_key(made: Path, table: str, width: int) -> None:
    rows = (made / table_file(table)).read_text().splitlines()
    keys = [tuple(map(int, row.split("\t")[:width])) for row in rows]
    assert keys == sorted(set(keys))


def test_the_bytes_do_not_depend_on_workers_or_hash_seed(made: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from datagen.generate import generate;"
        "from datagen.parameters import Parameters\n"
        "if __name__ == '__main__':\n"
        "    given = Parameters.model_validate_json(sys.argv[1])\n"
        "    generate(given, Path(sys.argv[2]), workers_count=3)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(program)
    out = tmp_path / "data"
    subprocess.run(
        [sys.executable, str(script), SMALL.model_dump_json(), str(out)],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "4711"},
    )
    assert sums(out) == sums(made)


def test_another_seed_gives_other_bytes(made: Path, tmp_path: Path) -> None:
    generate(SMALL.model_copy(update={"seed": 12}), tmp_path, workers_count=1)
    other, ours = sums(tmp_path), sums(made)
    assert all(other[name] != ours[name] for name in ours)


def test_these_bytes_are_the_ones_of_generator_1(made: Path) -> None:
    # A change of these sums is a change of every published data set: raise GENERATOR with it.
    assert SMALL.generator == 1
    assert read_manifest(made).data_sha256 == EXPECTED


EXPECTED = "4ac9f4b060d0a507060363a250dddcbaa7baa6cd8a533aea9d16b9cb56039513"


def test_a_data_set_is_not_made_twice(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise AssertionError("generated again")

    monkeypatch.setattr(module, "_write", refuse)
    outcome = generate(SMALL, made)
    assert outcome.reused
    assert outcome.manifest == read_manifest(made)


def test_other_data_in_the_directory_is_refused_unless_forced(tmp_path: Path) -> None:
    tiny = Parameters(scale=1, districts=1, customers=10, items=10, sensor_rows=5)
    generate(tiny, tmp_path, workers_count=1)
    other = tiny.model_copy(update={"seed": 1})
    with pytest.raises(UsageError, match="other parameters"):
        generate(other, tmp_path, workers_count=1)
    (tmp_path / NAME).unlink()
    with pytest.raises(UsageError, match="no complete data set"):
        generate(other, tmp_path, workers_count=1)
    assert not generate(other, tmp_path, workers_count=1, force=True).reused
    assert read_manifest(tmp_path).parameters == other


def test_a_failure_leaves_nothing_that_looks_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def failing(*arguments: object) -> plan.Rendered:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return original(*arguments)  # type: ignore[arg-type]

    original = plan.render
    monkeypatch.setattr(plan, "render", failing)
    with pytest.raises(KeyboardInterrupt):
        generate(SMALL, tmp_path, workers_count=1)
    assert sums(tmp_path) == {}
    with pytest.raises(InputError, match="holds no data set"):
        read_manifest(tmp_path)


def test_what_a_killed_process_left_is_cleared(tmp_path: Path, made: Path) -> None:
    (tmp_path / ".partial").mkdir()
    (tmp_path / ".partial" / "item.csv").write_text("half a li")
    generate(SMALL, tmp_path, workers_count=1)
    assert sums(tmp_path) == sums(made)
    assert not (tmp_path / ".partial").exists()


def test_a_second_process_waits_and_finds_the_data_of_the_first(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from datagen.generate import generate;"
        "from datagen.parameters import Parameters;"
        "given = Parameters.model_validate_json(sys.argv[1]);"
        "print(generate(given, Path(sys.argv[2]), workers_count=1).reused)"
    )
    command = [sys.executable, "-c", script, SMALL.model_dump_json(), str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = sorted(process.communicate(timeout=120)[0].strip() for process in both)
    assert answers == ["False", "True"]
    read_manifest(tmp_path)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot make the directory"):
        generate(SMALL, tmp_path / "file" / "data")


def test_a_full_disk_is_told_beforehand(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="GB free"):
        generate(Parameters(scale=2_000, sensor_rows=10**12), tmp_path)


@pytest.fixture
def damaged(made: Path, tmp_path: Path) -> Path:
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_a_short_file_is_not_a_data_set(damaged: Path) -> None:
    with (damaged / "orders.csv").open("ab") as file:
        file.write(b"1\n")
    with pytest.raises(InputError, match=r"orders\.csv is not the file"):
        read_manifest(damaged)
    (damaged / "orders.csv").unlink()
    with pytest.raises(InputError, match="missing"):
        read_manifest(damaged)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"data_sha256": 1}', "\xff"])
def test_a_broken_manifest_is_refused(damaged: Path, text: str) -> None:
    (damaged / NAME).write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="not a manifest"):
        read_manifest(damaged)


def test_an_altered_manifest_is_refused(damaged: Path) -> None:
    document = json.loads((damaged / NAME).read_text())
    document["files"][0]["rows"] += 1
    (damaged / NAME).write_text(json.dumps(document))
    with pytest.raises(InputError, match="was altered"):
        read_manifest(damaged)


def test_the_tables_identity_ignores_the_sensors(made: Path) -> None:
    manifest = read_manifest(made)
    for name in ("sensor-1.csv", table_file(TABLES[0])):
        entries = [
            entry.model_copy(update={"sha256": "0" * 64}) if entry.name == name else entry
            for entry in manifest.files
        ]
        other = Manifest(
            parameters=manifest.parameters, downtimes=manifest.downtimes, files=tuple(entries)
        )
        assert other.data_sha256 != manifest.data_sha256
        same = other.tables_sha256 == manifest.tables_sha256
        assert same == (name == "sensor-1.csv")


def test_the_estimates_are_near(made: Path) -> None:
    manifest = read_manifest(made)
    rows = sum(entry.rows for entry in manifest.files)
    size = sum(entry.bytes for entry in manifest.files)
    assert plan.expected_rows(SMALL) == pytest.approx(rows, rel=0.1)
    assert size <= plan.expected_bytes(SMALL) <= 2 * size
