"""Capture: the topics of a query of a run, written to a directory that the validator judges."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from espbench import __version__
from espbench.errors import UsageError
from espbench.kafka.admin import KafkaAdmin
from espbench.names import Query, topics_of
from espbench.paths import make_dir
from validator.capture.topic import capture_topic
from validator.capturedir import FORMAT, NAME


@dataclass(frozen=True, slots=True)
class CaptureOrder:
    """What to capture, and what the topics cannot tell of the run."""

    query: Query
    run: str
    prefix: str
    guarantee: str
    rate: float | None
    duration: float | None
    warmup: float
    sender_report: dict[str, Any] | None


def capture(
    admin: KafkaAdmin, order: CaptureOrder, out: Path, progress: Callable[[int], Any]
) -> dict[str, Any]:
    """Write the capture directory `out`, whole or not at all; returns what capture.json says."""
    if out.exists():
        raise UsageError(f"{out} exists already", "name a new directory with --out")
    if order.query.tables:
        raise UsageError(
            f"{order.query.name} needs the table {order.query.tables[0]} in its capture, "
            "and tables are not captured yet",
            "write it to a file and use validate --table",
        )
    make_dir(out.parent)
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    make_dir(draft)
    try:
        topics = []
        done = 0
        for role, name in topics_of(order.prefix, order.run, order.query).items():
            topic = capture_topic(admin, name, role, draft, _counting_from(done, progress))
            done += topic.records
            topics.append(asdict(topic))
        document = {
            "format": FORMAT,
            "run_id": order.run,
            "query": order.query.name,
            "prefix": order.prefix,
            "guarantee": order.guarantee,
            "rate": order.rate,
            "duration": order.duration,
            "warmup": order.warmup,
            "topics": topics,
            "tables": [],
            "sender_report": order.sender_report,
            "versions": {"espbench": __version__},
        }
        (draft / NAME).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        draft.rename(out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return document


def _counting_from(start: int, progress: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda done: progress(start + done)
