"""The page of a database comparison: all figures, nothing trusted, nothing loaded."""

import re
from typing import Any

import pytest

from espbench.databases.page import page

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&"


def profile(name: str, **more: Any) -> dict[str, Any]:
    base = {
        "name": name,
        "state": "done",
        "error": None,
        "profile": {"name": name, "server": "postgresql"},
        "server": {"product": "PostgreSQL", "version": "18.4"},
        "settings": {"fsync": "on"},
        "load": {
            "seconds": 2.0,
            "rows_per_s": 500_000,
            "tables": {"item": {"rows_per_s": 1_234_567}},
        },
        "size_bytes": {"item": 10_000_000},
        "search": {
            "sustained_rate": 40_000.0,
            "tried": [{"rate": 40_000.0, "held": True}, {"rate": 80_000.0, "held": False}],
            "limited": False,
        },
        "plans": [{"what": "lookup", "statement": "SELECT 1 < 2", "plan": "Result"}],
    }
    return base | more


def document(*profiles: dict[str, Any], state: str = "finished") -> dict[str, Any]:
    return {
        "id": "a",
        "state": state,
        "started": "2026-01-01T00:00:00+00:00",
        "scale": 1,
        "seed": 2021,
        "work": {"rate": 1_000.0, "duration_s": 10.0, "batch_s": 0.1, "step_s": 3.0},
        "machine": {"cores": 2, "memory_bytes": 2**34, "processor": "P", "system": "Linux"},
        "load_average": {"before": 0.1, "after": 1.2},
        "profiles": list(profiles),
    }


def test_every_profile_has_its_figures_settings_and_plans() -> None:
    text = page(document(profile("one"), profile("two", search=None)))
    for wanted in ("1,234,567", "40,000 held, 80,000 failed", "SELECT 1 &lt; 2", "fsync = on"):
        assert wanted in text
    # The longest bar is as wide as its chart; what was not measured has none.
    (rates,) = re.findall(r"<h4>highest sustained rate.*?</figure>", text, re.DOTALL)
    assert re.findall(r'width="([\d.]+)"', rates) == ["100.0", "0.0"]


@pytest.mark.parametrize("state", ["failed", "interrupted"])
def test_a_comparison_that_did_not_end_says_so(state: str) -> None:
    broken = {"name": "one", "state": "failed", "error": "no server", "profile": {"name": "one"}}
    text = page(document(broken, state=state))
    assert state.capitalize() in text
    assert "one: failed: no server" in text


def test_hostile_names_stay_texts() -> None:
    text = page(document(profile(HOSTILE, settings={HOSTILE: HOSTILE}, plans=[])))
    assert "<img" not in text
    assert 'style="' not in text
    assert "default-src &#39;none&#39;" in text
