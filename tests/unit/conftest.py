"""Unit tests see a machine without settings of ours, whatever ran before them."""

import os

import pytest
from hypothesis import settings

# How long an example takes says something of the machine, and nothing of the code.
settings.register_profile("espbench", deadline=None)
settings.load_profile("espbench")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ESPBENCH_")]:
        monkeypatch.delenv(name)
