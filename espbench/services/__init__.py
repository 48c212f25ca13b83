"""Embedded services: real servers as child processes on free ports of 127.0.0.1."""

from espbench.config import Settings
from espbench.errors import UsageError
from espbench.services.kafka import Kafka
from espbench.services.mariadb import MariaDB
from espbench.services.postgresql import PostgreSQL
from espbench.services.service import Service
from espbench.services.spark import SparkMaster, SparkWorker

# A worker needs its master, so it stands after it.
_ALL: tuple[type[Service], ...] = (Kafka, PostgreSQL, MariaDB, SparkMaster, SparkWorker)
KINDS: dict[str, type[Service]] = {kind.name: kind for kind in _ALL}
# What a run needs by default; the others start when they are named.
DEFAULT = ("kafka", "postgresql")


def select(settings: Settings, names: list[str] | None = None) -> list[Service]:
    """The services of these names, the default ones where none is named."""
    for name in names or []:
        if name not in KINDS:
            raise UsageError(f"there is no service {name!r}", f"there are: {', '.join(KINDS)}")
    wanted = names or DEFAULT
    return [kind(settings) for name, kind in KINDS.items() if name in wanted]


def present(settings: Settings, names: list[str] | None = None) -> list[Service]:
    """The services of these names; without names the default ones and all that were ever started.

    For commands that look at services or stop them: one that was started must not be forgotten.
    """
    if names:
        return select(settings, names)
    everything = select(settings, list(KINDS))
    return [one for one in everything if one.name in DEFAULT or one.home.exists()]
