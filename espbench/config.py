"""The configuration: one YAML file, then `ESPBENCH_…` variables, then options; later beats earlier.

A nested key is spelled with two underscores in the environment: `kafka.prefix` is
`ESPBENCH_KAFKA__PREFIX`. Unknown keys and impossible values are refused with the key's path.
"""

import os
import re
from collections.abc import Hashable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    IPvAnyAddress,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from espbench.errors import ConfigError, UsageError
from espbench.names import parse_queries

PREFIX = "ESPBENCH_"
DEFAULT_FILE = Path("espbench.yml")
# Not configuration: how a run speaks to the commands it starts.
INTERNAL_VARIABLES = frozenset({"ESPBENCH_RUN_PROCESS", "ESPBENCH_STEP_LOG"})

# Beyond these, times in nanoseconds and counts of records leave 64 bits or any use.
YEAR_S = 366 * 86_400
MOST_PER_S = 100_000_000

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$")]
# Of an embedded server; 0 takes any free one.
Port = Annotated[int, Field(ge=0, le=65_535)]
Memory = Annotated[str, Field(pattern=r"^\d+[mg]$")]
Identifier = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$")]


# Settings of Kafka and Spark, by their names there, that no one else may see.
_SECRET = re.compile(r"pass|secret|jaas|token|credential|(^|[._-])key$", re.IGNORECASE)
HIDDEN = "(hidden)"


def _spelled(value: Any) -> Any:
    """A setting's value as a server reads it: YAML takes `off` for a truth value."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int | float) else value


# A database server's own settings, by their names there.
ServerSettings = dict[
    Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,99}$")],
    Annotated[str, BeforeValidator(_spelled), Field(pattern=r"^[^\r\n\x00]{0,1000}$")],
]


def _splittable(url: str) -> str:
    """Raises `ValueError` for what cannot be taken apart, as an IPv6 address without its end."""
    urlsplit(url)
    return url


Url = Annotated[str, AfterValidator(_splittable)]
Voters = Annotated[str, Field(pattern=r"^\d+@[^@,\s]+:\d+(,\d+@[^@,\s]+:\d+)*$")]


def _joined(value: Any) -> Any:
    """One text of what YAML takes for a number or a list: `queries: 3`, `queries: [q1, q3]`."""
    parts = value if isinstance(value, list) else [value]
    if all(isinstance(part, str | int) and not isinstance(part, bool) for part in parts):
        return ",".join(map(str, parts))
    return value


def _named(text: str) -> str:
    """Queries as the user wrote them, if all of them exist."""
    try:
        parse_queries(text)
    except UsageError as error:
        raise ValueError(error.line()) from error
    return text


def _servers(text: str) -> str:
    """Kafka's address, if it is one."""
    servers = [part.strip() for part in text.split(",")]
    for server in servers:
        host, _, port = server.rpartition(":")
        if not re.fullmatch(r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+", host) or not (
            port.isdecimal() and 0 < int(port) <= 65_535
        ):
            raise ValueError("write it as host:port, several with commas")
    return ",".join(servers)


def _place(value: Any) -> Any:
    if value == "":
        raise ValueError("name a directory; `.` is this one")
    return value


Place = Annotated[Path, BeforeValidator(_place)]
Isolation = Literal["read committed", "repeatable read", "serializable"]


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth(cls, value: Any) -> Any:
        """No setting of a group is a truth value, which would else pass for the number 0 or 1."""
        if isinstance(value, bool):
            raise ValueError("input should not be true or false")  # noqa: TRY004 - pydantic's way
        return value


class KafkaSettings(_Group):
    """The broker. Without `bootstrap_servers` the embedded one is used."""

    bootstrap_servers: Annotated[str, BeforeValidator(_joined), AfterValidator(_servers)] | None = (
        None
    )
    # Kafka's own in Java's names, e.g. security.protocol: all for Spark, those that let a client in
    # for the other clients as well. A secret belongs into the environment.
    options: dict[str, str] = {}
    prefix: Name = "espbench"
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 1
    replication_factor: Annotated[int, Field(ge=1, le=100)] = 1
    heap_mb: Annotated[int, Field(ge=256)] = 768
    port: Port = 0
    # Of an embedded broker among several: its number, and all of them as Kafka writes them,
    # 1@10.0.0.1:9093,2@10.0.0.2:9093,… (where their controllers listen).
    node_id: Annotated[int, Field(ge=1, le=1_000)] = 1
    voters: Voters | None = None


class DatabaseSettings(_Group):
    """The database. Without `url` the embedded PostgreSQL is used."""

    url: Url | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    schema_name: Identifier = "espbench"
    port: Port = 0
    # Of the embedded server, read when it starts; they beat ours.
    server_settings: ServerSettings = {}
    # Of every session of ours, for servers that others run.
    session_settings: ServerSettings = {}
    isolation: Isolation | None = None
    # How query 5 writes: a batch in one statement and one transaction, or each record by itself.
    writes: Literal["bulk", "single"] = "bulk"


class DataSettings(_Group):
    """What is generated; `directory` defaults to one named by content in the state directory."""

    directory: Path | None = None
    scale: Annotated[int, Field(ge=1, le=2_000)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 2021
    sensor_rows: Annotated[int, Field(ge=1)] = 600_011
    downtimes: Annotated[Literal["run", "2021"], BeforeValidator(_joined)] = "run"


class LoadSettings(_Group):
    """What the sender is asked for, per stream, and which part of it is warm-up."""

    rate: Annotated[float, Field(gt=0, le=MOST_PER_S)] = 1_000.0
    duration: Annotated[float, Field(gt=0, le=YEAR_S)] = 32.0
    warmup: Annotated[float, Field(ge=0)] = 10.0
    # As `espbench send --profile` takes it: NAME[:KEY=VALUE,…].
    profile: str = "constant"


class SparkSettings(_Group):
    """The example system under test."""

    master: str = "local[*]"
    engine: Literal["auto", "micro-batch", "real-time", "available-now"] = "auto"
    driver_memory: Memory = "2g"
    # Checkpoints by run and query; on a cluster a directory that all its machines share.
    checkpoint_dir: Path | None = None
    # Seconds until a change of a looked-up table must be seen.
    freshness: Annotated[float, Field(ge=0)] = 10.0
    # Seconds for which a query runs on made-up records before it is ready; 0: not at all.
    # By default as many as the length of the load is worth.
    rehearsal: Annotated[float, Field(ge=0, le=3_600)] | None = None
    # What an embedded worker gives away; by default all cores, and the memory less 1 GiB.
    worker_cores: Annotated[int, Field(ge=1)] | None = None
    worker_memory: Memory | None = None
    # Spark's own settings, by their names; they beat ours.
    conf: dict[str, str] = {}


class SloSettings(_Group):
    """The service level objective: this percentile after warm-up stays below the limit."""

    percentile: Annotated[float, Field(gt=0, lt=100)] = 90.0
    limit_ms: Annotated[float, Field(gt=0)] = 2_000.0


class Settings(BaseSettings):
    """The effective configuration of one command."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    state_dir: Place = Path(".espbench")
    results_dir: Place = Path("results")
    queries: Annotated[str, BeforeValidator(_joined), AfterValidator(_named)] = "q1,q2,q3,q4,q5"
    guarantee: Literal["at-least-once", "exactly-once"] = "at-least-once"
    keep_captures: bool = True
    # Where the embedded servers listen. Beyond this machine there is no encryption: trusted
    # networks only.
    listen_address: IPvAnyAddress = ip_address("127.0.0.1")
    ivy_settings: Path | None = None
    kafka: KafkaSettings = KafkaSettings()
    database: DatabaseSettings = DatabaseSettings()
    data: DataSettings = DataSettings()
    load: LoadSettings = LoadSettings()
    spark: SparkSettings = SparkSettings()
    slo: SloSettings = SloSettings()

    @property
    def rehearsal_s(self) -> float:
        """How long a query rehearses: by default 10 s before loads of a minute or more."""
        if self.spark.rehearsal is not None:
            return self.spark.rehearsal
        return 10.0 if self.load.duration >= 60 else 0.0

    def public(self) -> dict[str, Any]:
        """The configuration as plain data, without secrets."""
        data: dict[str, Any] = self.model_dump(mode="json")
        data["database"]["password"] = "set" if self.database.password else None
        data["database"]["url"] = without_password(self.database.url)
        for options in (data["kafka"]["options"], data["spark"]["conf"]):
            options.update(dict.fromkeys(secrets_in(options), HIDDEN))
        return data


def secrets_in(options: Mapping[str, str]) -> dict[str, str]:
    """Those of Kafka's or Spark's own settings that hold secrets, as far as their names tell."""
    return {name: value for name, value in options.items() if _SECRET.search(name)}


def holds_password(url: str) -> bool:
    """Whether something secret stands in the URL, before its host or among its options."""
    parts = urlsplit(url)
    return ":" in parts.netloc.rpartition("@")[0] or any(map(_is_secret, parts.query.split("&")))


def without_password(url: str | None) -> str | None:
    """The URL without what stands between user and host, and without secrets among its options."""
    if url is None or "://" not in url:
        # What is no URL may be a login all the same.
        return HIDDEN if url and "@" in url else url
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    options = "&".join(pair for pair in parts.query.split("&") if not _is_secret(pair))
    return urlunsplit(parts._replace(netloc=f"{login.partition(':')[0]}{at}{host}", query=options))


def _is_secret(pair: str) -> bool:
    return "pass" in pair.partition("=")[0].lower()


def load_settings(file: Path | None = None, options: dict[str, Any] | None = None) -> Settings:
    """Merge file, environment and options into checked settings.

    `options` is keyed by dotted path (`load.rate`); a value of None means "not given".
    """
    path = file or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    from_file = _read_yaml(path) if path else {}
    _refuse_unknown_variables()
    given = _nest({key: value for key, value in (options or {}).items() if value is not None})

    class Merged(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - not a source of ours
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, InitSettingsSource(settings_cls, from_file)

    try:
        return Merged(**given)
    except SettingsError as error:
        raise ConfigError(
            str(error), "write such a group as JSON, or use one variable a key"
        ) from error
    except ValidationError as error:
        raise ConfigError(*_explain(error, path)) from error


class _Strict(yaml.SafeLoader):
    """YAML in which a key that is given twice is an error; else the last one would win unseen."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        scalars = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in scalars:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        content = _Strict(path.read_text(encoding="utf-8")).get_single_data()
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration {path}: {error.strerror}", "check the path"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path} is not YAML: {reason}", "correct the file") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigError(f"{path} is not a mapping of keys to values", "correct the file")
    return content


def _refuse_unknown_variables() -> None:
    for name in os.environ:
        if not name.startswith(PREFIX) or name in INTERNAL_VARIABLES:
            continue
        model: type[BaseModel] | None = Settings
        for key in name.removeprefix(PREFIX).lower().split("__"):
            if model is None or key not in model.model_fields:
                raise ConfigError(
                    f"the environment variable {name} names no setting",
                    "`espbench config` lists them; a dot is spelled __",
                )
            kind = model.model_fields[key].annotation
            model = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _nest(flat: dict[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, last = path.split(".")
        place = nested
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return nested


def _explain(error: ValidationError, path: Path | None) -> tuple[str, str]:
    """What is wrong with the first wrong key (its path and value), and what is allowed."""
    first = error.errors()[0]
    *parents, last = (str(part) for part in first["loc"])
    key = ".".join([*parents, last])
    secret = first["loc"][0] == "database" or _SECRET.search(key)
    # What is a group of keys, or stands where one belongs, may hold secrets of any name.
    of_group = (dict, list) if first["type"] in {"model_type", "dict_type"} else dict
    shown = HIDDEN if secret or isinstance(first["input"], of_group) else repr(first["input"])
    if first["type"] == "extra_forbidden":
        where = f" in {path}" if path else ""
        known = f"known {'in ' + '.'.join(parents) if parents else 'here'}"
        return (
            f"unknown key {key} = {shown}{where}",
            f"{known} are {_keys_of(*parents)}",
        )
    if parents[:1] == ["kafka"] and last not in KafkaSettings.model_fields:
        shown = HIDDEN  # one of Kafka's own options
    if first["type"] == "model_type":
        return f"{key} = {shown} is not allowed", f"it is a group of keys: {_keys_of(key)}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{key} = {shown} is not allowed", message[:1].lower() + message[1:]


def _keys_of(*path: str) -> str:
    """The keys of a group, for people to read; of the whole configuration without a path."""
    group: type[BaseModel] = Settings
    for key in path:
        kind = group.model_fields[key].annotation
        group = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else group
    return ", ".join(group.model_fields)
