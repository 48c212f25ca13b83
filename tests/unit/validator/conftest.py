"""Judging made-up topics in a few words."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from espbench.names import find_query
from validator.judge import judge
from validator.request import Request
from validator.synthetic import Topic
from validator.topics import Claim, TopicFile

Judged = Callable[..., dict[str, Any]]


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    """Judge topics (or the bytes of files) as plain files; the document with its exit code.

    `sources` by stream, `claims` by role; everything else goes into the request.
    """

    def run(
        query: str,
        source: Topic | bytes | dict[int, Topic | bytes],
        sink: Topic | bytes | None,
        claims: dict[str, Claim] | None = None,
        **changes: Any,
    ) -> dict[str, Any]:
        said = claims or {}
        sources = source if isinstance(source, dict) else {1: source}

        def file(role: str, topic: Topic | bytes) -> TopicFile:
            path = tmp_path / f"{role}.jsonl"
            path.write_bytes(topic if isinstance(topic, bytes) else topic.json_lines())
            return TopicFile(role, path, said.get(role, Claim()))

        verdict = judge(
            Request(
                query=find_query(query),
                sources={n: file(f"source-{n}", topic) for n, topic in sources.items()},
                sink=None if sink is None else file("sink", sink),
                **changes,
            )
        )
        return verdict.document() | {"exit": int(verdict.exit_code())}

    return run
