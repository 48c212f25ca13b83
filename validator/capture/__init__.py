"""Capture: topics and tables of a query of a run, in a directory that the validator judges."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espbench import __version__
from espbench.errors import MachineError, UsageError
from espbench.kafka.admin import KafkaAdmin
from espbench.logs import LOGGER
from espbench.names import Query, topics_of
from espbench.paths import make_dir
from validator.capture.tables import capture_table
from validator.capture.topic import capture_topic
from validator.capture.unfinished import clean, drop_if_empty, workplace_of
from validator.capturedir import FORMAT, NAME

if TYPE_CHECKING:
    from schema.contract import Database


@dataclass(frozen=True, slots=True)
class CaptureOrder:
    """What to capture, and what topics and tables cannot tell of the run.

    `rate` and `duration` are None where nobody says what was asked of the sender.
    """

    query: Query
    run: str
    prefix: str
    guarantee: str
    rate: float | None
    duration: float | None
    warmup: float
    sender_report: dict[str, Any] | None
    freshness: float = 10.0
    # Of the brokers, where there are several: `offset_ms` against the first.
    clocks: Sequence[Any] = ()


def capture(
    admin: KafkaAdmin,
    order: CaptureOrder,
    out: Path,
    progress: Callable[[int], Any],
    database: "Database | None" = None,
) -> dict[str, Any]:
    """Write the capture directory `out`, whole or not at all; returns what capture.json says.

    What an interrupted capture of the same topics to the same place had read is not read again.

    `database` is needed for queries with tables only.
    """
    if out.exists():
        raise UsageError(f"{out} exists already", "name a new directory with --out")
    make_dir(out.parent)
    asked = {
        "query": order.query.name,
        "run": order.run,
        "prefix": order.prefix,
        "bootstrap_servers": str(admin.bootstrap_servers),
    }
    try:
        with workplace_of(out, asked) as draft:
            try:
                document = _write(admin, order, draft, progress, database)
                draft.rename(out)
            except BaseException:
                if drop_if_empty(draft):
                    LOGGER.warning("what was read is kept: the same command goes on with it")
                raise
    except OSError as error:
        raise MachineError(
            f"cannot write the capture {out}: {error.strerror or error}",
            "check disk and permissions",
        ) from error
    return document


def _write(
    admin: KafkaAdmin,
    order: CaptureOrder,
    draft: Path,
    progress: Callable[[int], Any],
    database: "Database | None",
) -> dict[str, Any]:
    topics = []
    done = 0
    for role, name in topics_of(order.prefix, order.run, order.query).items():
        topic = capture_topic(admin, name, role, draft, _counting_from(done, progress))
        done += topic.records
        topics.append(asdict(topic))
    tables = []
    for name in order.query.tables:
        if database is None:
            raise UsageError(f"{order.query.name} needs the table {name}", "name the database")
        tables.append(asdict(capture_table(database, name, draft)))
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
        "tables": tables,
        "sender_report": order.sender_report,
        "freshness": order.freshness,
        "clocks": list(order.clocks),
        "versions": {"espbench": __version__},
    }
    clean(draft)
    (draft / NAME).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return document


def _counting_from(start: int, progress: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda done: progress(start + done)
