from pathlib import Path

import pytest

from espbench.config import load_settings
from espbench.errors import ConfigError
from espbench.names import parse_queries


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_options_beat_the_environment_which_beats_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "c.yml", "load: {rate: 1, duration: 2, warmup: 3}\n")
    monkeypatch.setenv("ESPBENCH_LOAD__RATE", "10")
    monkeypatch.setenv("ESPBENCH_LOAD__DURATION", "20")
    settings = load_settings(file, {"load.rate": 100.0, "load.duration": None})
    assert (settings.load.rate, settings.load.duration, settings.load.warmup) == (100, 20, 3)


def test_a_file_in_the_working_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "espbench.yml", "kafka: {prefix: mine}\n")
    monkeypatch.chdir(tmp_path)
    assert load_settings().kafka.prefix == "mine"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("load: {rate: -5}", "load.rate = -5"),
        ("load: {rte: 5}", "unknown key load.rte = 5"),
        ("load: {rte: 5}", "known in load are rate, duration"),
        ("queries: q3,q9", "queries = 'q3,q9' is not allowed; there is no query 'q9'"),
        ("spark: {driver_memory: '2'}", "pattern '^\\d+[mg]$'"),
        ("kafka: {prefix: 'a b'}", "'^[A-Za-z0-9_]"),
        ("kafka: {bootstrap_servers: nonsense}", "write it as host:port"),
        ("kafka: {bootstrap_servers: 'a:99999'}", "write it as host:port"),
        ("results_dir: ''", "results_dir = ''"),
        ("nonsense: 1", "unknown key nonsense"),
        ("- a\n- b", "is not a mapping"),
        ("load: [", "is not YAML"),
        ("load: {rate: 1, rate: 2}", "the key rate is given twice"),
        ("queries: [q3, q9]", "queries = ['q3', 'q9'] is not allowed; there is no query 'q9'"),
        ("spark: [secret]", "spark = (hidden) is not allowed; it is a group of keys: master"),
        ("load: {rate: true}", "load.rate = True is not allowed; input should not be true"),
        ("data: {scale: yes}", "data.scale = True"),
        ("load:", "load = None is not allowed; it is a group of keys: rate, duration"),
        ("queries: true", "queries = True"),
        ("data: {downtimes: 2020}", "data.downtimes = '2020' is not allowed"),
        ("kafka: {prefix: 'a b'}", "kafka.prefix = 'a b'"),
        ("database: {schema_name: 'x; drop'}", "database.schema_name"),
    ],
)
def test_wrong_files_are_refused_with_the_keys_path(
    tmp_path: Path, text: str, expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(tmp_path / "c.yml", text))
    assert expected in caught.value.line()
    assert "\n" not in caught.value.line()


def test_an_unknown_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESPBENCH_LOAD__RTE", "5")
    with pytest.raises(ConfigError, match="ESPBENCH_LOAD__RTE"):
        load_settings()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_settings(tmp_path / "absent.yml")


def test_secrets_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESPBENCH_DATABASE__PASSWORD", "s3cret")
    monkeypatch.setenv("ESPBENCH_DATABASE__URL", "postgresql://me:s3cret@h/d")
    settings = load_settings()
    assert "s3cret" not in str(settings.public())
    assert settings.public()["database"]["url"] == "postgresql://me@h/d"


@pytest.mark.parametrize(
    "text",
    [
        "kafka: {options: {sasl.jaas.config: [s3cret]}}",
        "kafka: {options: {sasl.mechanism: [s3cret]}}",
        "database: {passwrd: s3cret}",
        "database: [s3cret]",
        "spark: {conf: {spark.ssl.keyPassword: [s3cret]}}",
    ],
)
def test_what_may_be_a_secret_is_not_in_the_refusal(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(tmp_path / "c.yml", text))
    assert "s3cret" not in caught.value.line()


def test_secrets_among_the_options_of_kafka_and_spark_are_never_shown(tmp_path: Path) -> None:
    text = """
        kafka: {options: {sasl.jaas.config: s3cret, ssl.keystore.key: s3cret, sasl.mechanism: X}}
        spark: {conf: {spark.ssl.keyPassword: s3cret, spark.ui.port: "4711"}}
        database: {url: "me:s3cret@h/d"}
    """
    public = load_settings(write(tmp_path / "c.yml", text)).public()
    assert "s3cret" not in str(public)
    assert public["kafka"]["options"]["sasl.mechanism"] == "X"
    assert public["spark"]["conf"]["spark.ui.port"] == "4711"


def test_a_variable_adds_its_options_to_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "c.yml", "kafka: {options: {sasl.mechanism: PLAIN}}")
    monkeypatch.setenv("ESPBENCH_KAFKA__OPTIONS", '{"sasl.jaas.config": "s3cret"}')
    options = load_settings(file).kafka.options
    assert options == {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "s3cret"}


def test_servers_with_blanks_and_ipv6_are_taken() -> None:
    settings = load_settings(options={"kafka.bootstrap_servers": "a:1, [::1]:9092"})
    assert settings.kafka.bootstrap_servers == "a:1,[::1]:9092"


@pytest.mark.parametrize("text", ["3", "[3]", "[q3]", "[identify-errors]"])
def test_queries_are_taken_as_numbers_and_lists(tmp_path: Path, text: str) -> None:
    settings = load_settings(write(tmp_path / "c.yml", f"queries: {text}"))
    assert [query.number for query in parse_queries(settings.queries)] == [3]


def test_a_year_of_downtimes_and_a_list_of_servers_are_taken(tmp_path: Path) -> None:
    text = "{data: {downtimes: 2021}, kafka: {bootstrap_servers: ['a:1', 'b:2']}}"
    settings = load_settings(write(tmp_path / "c.yml", text))
    assert (settings.data.downtimes, settings.kafka.bootstrap_servers) == ("2021", "a:1,b:2")
