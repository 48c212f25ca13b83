"""Unit tests see a machine without settings of ours, whatever ran before them."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ESPBENCH_")]:
        monkeypatch.delenv(name)
