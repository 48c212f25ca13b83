"""The profiles that the documentation shows are profiles."""

import re
from pathlib import Path

import pytest

from espbench.databases.profiles import read_profiles
from espbench.errors import ConfigError

PAGE = Path(__file__).parents[3] / "docs" / "databases-compared.md"


def test_the_documented_profiles_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    file = tmp_path / "profiles.yml"
    file.write_text(found.group(1), encoding="utf-8")
    profiles = {profile.name: profile for profile in read_profiles(file)}
    assert list(profiles) == ["durable", "big-buffers", "line-by-line", "ours"]
    assert profiles["line-by-line"].database().writes == "single"
    with pytest.raises(ConfigError, match="BENCH_PASSWORD"):
        profiles["ours"].database()
    monkeypatch.setenv("BENCH_PASSWORD", "x")
    assert profiles["ours"].database().session_settings == {"synchronous_commit": "off"}
