from pathlib import Path

import pytest

from espbench.config import load_settings
from espbench.errors import ConfigError


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
        ("load: {rte: 5}", "unknown key load.rte"),
        ("nonsense: 1", "unknown key nonsense"),
        ("- a\n- b", "is not a mapping"),
        ("load: [", "is not YAML"),
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
