"""The arrows between packages: the judge stays independent of what it judges."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = {
    "espbench.__version__",
    "espbench.config",
    "espbench.errors",
    "espbench.logs",
    "espbench.names",
    "espbench.paths",
    "espbench.timestamps",
}
OURS = {"espbench", "datagen", "schema", "sender", "queries", "validator"}
# What each package may import of the others, beside the core.
ALLOWED = {
    "datagen": {"datagen"},
    "schema": {"schema", "espbench.services.endpoints"},
    "sender": {"sender", "espbench.kafka"},
    "queries": {"queries", "schema", "espbench.kafka", "espbench.services"},
    "validator": {"validator"},
}
KAFKA_CLIENTS = {"confluent_kafka", "kafka"}
HEAVY = {"pyspark", "confluent_kafka", "kafka", "sqlalchemy", "psycopg", "faker", "pandas"}


def imports(path: Path, *, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def inside(name: str, allowed: set[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in allowed)


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_packages_import_only_what_the_house_allows(package: str) -> None:
    crossings = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules(package)
        for name in imports(path)
        if name.split(".")[0] in OURS - {"espbench"} or name.startswith("espbench.")
        if not inside(name, ALLOWED[package] | CORE)
        # Capture alone reads live topics and tables.
        if not path.is_relative_to(ROOT / "validator" / "capture")
    ]
    assert not crossings


def test_the_validator_never_meets_spark_the_sender_or_a_kafka_client() -> None:
    crossings = [
        f"{path.name}: {name}"
        for path in modules("validator")
        for name in imports(path)
        if name.split(".")[0] in {"pyspark", "queries", "sender", "datagen"}
        or (
            name.split(".")[0] in KAFKA_CLIENTS
            and "capture" not in path.relative_to(ROOT).as_posix()
        )
    ]
    assert not crossings


def test_commands_start_without_the_extras() -> None:
    heavy = [
        f"{path.name}: {name}"
        for path in [*modules("espbench/cli"), ROOT / "espbench/__main__.py"]
        for name in imports(path, top_level_only=True)
        if name.split(".")[0] in HEAVY | (OURS - {"espbench"})
    ]
    assert not heavy


def test_the_check_sees_a_crossing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from queries import session\n", encoding="utf-8")
    assert "queries" in imports(bad)
