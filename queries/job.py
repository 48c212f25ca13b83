"""What one execution of a query needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from queries.definition import Definition, Way
from queries.drain import Finish
from queries.engine import Plan
from queries.session import Places

if TYPE_CHECKING:
    from queries.rehearsal import Rehearsal
    from schema.contract import Database


@dataclass(frozen=True, slots=True)
class Job:
    """What one execution needs; `topics` by role, `ask_broker` raises where none answers."""

    definition: Definition
    topics: Mapping[str, str]
    bootstrap_servers: str
    ask_broker: Callable[[], object]
    plan: Plan
    places: Places
    checkpoint: Path
    jars: Sequence[Path]
    java_home: Path
    driver_memory: str
    finish: Finish
    freshness_s: float
    # None for a query without tables.
    database: "Database | None"
    partitions: Mapping[str, int]
    kafka_options: Mapping[str, str] = field(default_factory=dict)
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    ready_file: Path | None = None
    # None where there is no time for one.
    rehearsal: "Rehearsal | None" = None

    @property
    def way(self) -> Way:
        """How the query runs in the chosen mode."""
        return self.definition.ways[self.plan.engine]

    def needed_database(self) -> "Database":
        """The database of a query that has tables."""
        if self.database is None:
            raise TypeError(f"{self.definition.query.name} names no table")
        return self.database
