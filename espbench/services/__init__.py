"""Embedded services: real servers as child processes on free ports of 127.0.0.1."""

from espbench.config import Settings
from espbench.errors import UsageError
from espbench.services.kafka import Kafka
from espbench.services.postgresql import PostgreSQL
from espbench.services.service import Service

KINDS: dict[str, type[Service]] = {kind.name: kind for kind in (Kafka, PostgreSQL)}


def select(settings: Settings, names: list[str] | None = None) -> list[Service]:
    """The services of these names, all where none is named."""
    for name in names or []:
        if name not in KINDS:
            raise UsageError(f"there is no service {name!r}", f"there are: {', '.join(KINDS)}")
    return [kind(settings) for name, kind in KINDS.items() if not names or name in names]
