from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.names import find_query
from queries.checkpoint import claimed

Q3, Q0 = find_query("q3"), find_query("q0")
TOPICS = {"source-1": "a-1", "sink": "a-identify-errors"}


def test_the_same_query_may_come_back(tmp_path: Path) -> None:
    for _ in range(2):
        with claimed(tmp_path / "checkpoint", Q3, TOPICS, "") as descriptor:
            assert descriptor > 2


def test_another_query_other_topics_or_another_content_are_refused(tmp_path: Path) -> None:
    with claimed(tmp_path, Q3, TOPICS, ""):
        pass
    others = ((Q0, TOPICS, ""), (Q3, {**TOPICS, "sink": "b"}, ""), (Q3, TOPICS, "rest"))
    for query, topics, keeps in others:
        with (
            pytest.raises(UsageError, match="belongs to another"),
            claimed(tmp_path, query, topics, keeps),
        ):
            pass


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    with (
        claimed(tmp_path, Q3, TOPICS, ""),
        pytest.raises(UsageError, match="in use"),
        claimed(tmp_path, Q3, TOPICS, "", patience_s=0),
    ):
        pass
