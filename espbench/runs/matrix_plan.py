"""What a matrix asks for: one YAML file, checked, turned into cells in their order.

    queries x rates x engines x databases x profiles, each so many times

Every cell is a run of one query by itself. An axis that the file leaves out has one value, that of
the configuration.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from espbench.config import DatabaseSettings, Settings, without_password
from espbench.errors import ConfigError
from espbench.names import find_query, parse_queries

Engine = Literal["auto", "micro-batch", "real-time", "available-now"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$")]
CONFIGURED = "configured"


def _listed(value: Any) -> Any:
    """One value stands for a list of one; words may be separated by commas."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, list) else [value]


def _query_names(value: Any) -> Any:
    return [find_query(str(one)).name for one in _listed(value)]


def _databases(value: Any) -> Any:
    """`[postgresql, mariadb]` is short for each by its own name."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return {one: {"url": one} for one in value}
    return value


def _one_profile(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class MatrixFile(BaseModel):
    """The keys of a matrix file; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    queries: Annotated[list[str], BeforeValidator(_query_names), Field(min_length=1)] | None = None
    rates: (
        Annotated[
            list[Annotated[float, Field(gt=0)]], BeforeValidator(_listed), Field(min_length=1)
        ]
        | None
    ) = None
    engines: Annotated[list[Engine], BeforeValidator(_listed), Field(min_length=1)] | None = None
    databases: (
        Annotated[dict[Name, dict[str, Any]], BeforeValidator(_databases), Field(min_length=1)]
        | None
    ) = None
    profiles: Annotated[list[str], BeforeValidator(_one_profile), Field(min_length=1)] | None = None
    repetitions: Annotated[int, Field(ge=1, le=1_000)] = 1
    order: Literal["fixed", "random"] = "fixed"
    seed: Annotated[int, Field(ge=0)] = 2021
    # Keys of the configuration that hold for every cell; options beat them.
    settings: dict[str, Any] = {}


# The experiment of the dissertation: five queries, two rates, five minutes, three times.
FULL = MatrixFile(
    queries=["q1", "q2", "q3", "q4", "q5"],
    rates=[1_000, 10_000],
    repetitions=3,
    settings={"data": {"scale": 3}, "load": {"duration": 300}},
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the matrix."""

    query: str
    rate: float
    engine: str
    database: str
    profile: str
    repetition: int

    @property
    def group(self) -> tuple[Any, ...]:
        """What its repetitions have in common."""
        return self.query, self.rate, self.engine, self.database, self.profile

    def text(self) -> str:
        """The cell as a person names it."""
        parts = [self.query, f"{self.rate:g}/s", self.engine, self.database, self.profile]
        known = [part for part in parts if part not in {CONFIGURED, "constant"}]
        return f"{', '.join(known)}, repetition {self.repetition}"

    def document(self) -> dict[str, Any]:
        """The cell as matrix.json keeps it."""
        return asdict(self)


def read_matrix(path: Path) -> MatrixFile:
    """Read and check a matrix file; raises `ConfigError` with the key's path."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", "check the path") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} is not YAML: {' '.join(str(error).split())}", "correct it"
        ) from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a mapping of keys to values", "correct the file")
    try:
        matrix = MatrixFile(**content)
    except ValidationError as error:
        raise ConfigError(*_explain(error, path)) from error
    for axis in ("queries", "rates", "engines", "profiles"):
        values = getattr(matrix, axis) or []
        if len(set(values)) != len(values):
            raise ConfigError(f"{axis} in {path} names a value twice", "name each once")
    for name, entry in (matrix.databases or {}).items():
        _check_database(f"databases.{name}", entry, path)
    if isinstance(matrix.settings.get("database"), dict):
        _check_database("settings.database", matrix.settings["database"], path)
    return matrix


def replace_axes(matrix: MatrixFile, given: Mapping[str, Any]) -> MatrixFile:
    """The matrix with the axes that options name; `given` by dotted path, None = not given."""
    changes: dict[str, Any] = {}
    if given.get("queries") is not None:
        changes["queries"] = [query.name for query in parse_queries(given["queries"])]
    if given.get("load.rate") is not None:
        changes["rates"] = [float(given["load.rate"])]
    if given.get("spark.engine") is not None:
        changes["engines"] = [given["spark.engine"]]
    if given.get("database.url") is not None:
        changes["databases"] = None
    return matrix.model_copy(update=changes)


def flat_settings(matrix: MatrixFile) -> dict[str, Any]:
    """`settings` by dotted path, as the configuration takes options."""
    flat: dict[str, Any] = {}
    for key, value in matrix.settings.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": one for inner, one in value.items()}
        else:
            flat[key] = value
    return flat


def plan(matrix: MatrixFile, base: Settings) -> list[Cell]:
    """All cells in the order in which they run.

    Fixed: everything once, then everything again, so that a machine that changes slowly changes
    all alike. Random: shuffled by the seed.
    """
    queries = matrix.queries or [query.name for query in parse_queries(base.queries)]
    cells = [
        Cell(query, rate, engine, database, profile, repetition)
        for repetition in range(1, matrix.repetitions + 1)
        for query in queries
        for rate in matrix.rates or [base.load.rate]
        for engine in matrix.engines or [base.spark.engine]
        for database in matrix.databases or [CONFIGURED]
        for profile in matrix.profiles or [base.load.profile]
    ]
    if matrix.order == "random":
        random.Random(matrix.seed).shuffle(cells)  # noqa: S311 - an order, not a secret
    return cells


def cell_settings(matrix: MatrixFile, base: Settings, cell: Cell) -> Settings:
    """The configuration of one cell."""
    load = base.load.model_copy(update={"rate": cell.rate, "profile": cell.profile})
    spark = base.spark.model_copy(update={"engine": cell.engine})
    changes: dict[str, Any] = {"queries": cell.query, "load": load, "spark": spark}
    if matrix.databases:
        entry = dict(matrix.databases[cell.database])
        if base.database.password and "password_file" not in entry:
            entry["password"] = base.database.password
        # The whole group: the port or password file of another database must not slip in.
        changes["database"] = DatabaseSettings(**entry)
    return base.model_copy(update=changes)


def _check_database(where: str, entry: Mapping[str, Any], path: Path) -> None:
    url = entry.get("url")
    if "password" in entry or (isinstance(url, str) and url != without_password(url)):
        raise ConfigError(
            f"{where} in {path} holds a password",
            "name a file by password_file, or set ESPBENCH_DATABASE__PASSWORD",
        )
    try:
        DatabaseSettings(**entry)
    except ValidationError as error:
        raise ConfigError(*_explain(error, path, (where,))) from error


def _explain(error: ValidationError, path: Path, above: Iterable[str] = ()) -> tuple[str, str]:
    first = error.errors()[0]
    key = ".".join([*above, *(str(part) for part in first["loc"])])
    if first["type"] == "extra_forbidden":
        return f"unknown key {key} in {path}", "see docs/matrix.md for the known ones"
    return f"{key} = {first['input']!r} in {path} is not allowed", first["msg"].lower()
