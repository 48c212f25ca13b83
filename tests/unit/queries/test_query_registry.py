import json
from pathlib import Path

import pytest

from espbench.errors import MachineError
from espbench.names import QUERIES
from queries.registry import DEFINITIONS
from queries.report import Report, write_json


def test_each_definition_stands_under_its_own_query() -> None:
    assert set(DEFINITIONS) == set(QUERIES)
    for query, definition in DEFINITIONS.items():
        assert definition.query is query
        assert definition.engines


def test_a_report_is_plain_data(tmp_path: Path) -> None:
    report = Report(
        query="identity",
        run="r",
        engine="micro-batch",
        master="local[2]",
        trigger_ms=0,
        guarantee="at-least-once",
        emits="final",
        freshness_s=None,
        topics={},
        progress_file=tmp_path / "p",
        log_file=tmp_path / "l",
        checkpoint=tmp_path / "c",
    )
    report.totals.answered = {"t": {0: 5}}
    path = tmp_path / "new" / "report.json"
    write_json(path, report.document())
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["format"] == "espbench-query/1"
    assert found["answered"] == {"t": {"0": 5}}
    assert list(path.parent.iterdir()) == [path]


def test_a_report_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(MachineError, match="cannot write"):
        write_json(tmp_path / "taken", {})
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
