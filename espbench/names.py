"""The names of queries, streams and topics: one vocabulary for every package."""

from dataclasses import dataclass

from espbench.errors import UsageError


@dataclass(frozen=True, slots=True)
class Query:
    """One query of the benchmark: what it reads and where its answers appear.

    `streams` are the source streams (1, 2: sensors; 3: production times). The answers are records
    of a sink topic, or, where `sink` is false, the table `output_table`.
    """

    number: int
    name: str
    streams: tuple[int, ...]
    sink: bool = True
    lookup_table: str | None = None
    output_table: str | None = None

    @property
    def short(self) -> str:
        """`q3` for query 3."""
        return f"q{self.number}"

    @property
    def tables(self) -> tuple[str, ...]:
        """The database tables that belong into a capture of this query."""
        return tuple(table for table in (self.lookup_table, self.output_table) if table)


QUERIES = (
    Query(0, "identity", (1,)),
    Query(1, "check-sensor-status", (1,)),
    Query(2, "determine-outliers", (1,)),
    Query(3, "identify-errors", (1,)),
    Query(4, "check-machine-power", (1, 2), lookup_table="workplace"),
    Query(5, "persist-processing-times", (3,), sink=False, output_table="production_order_line"),
)


def find_query(text: str) -> Query:
    """The query called `text`: its number (`3`), its short name (`q3`) or its name."""
    wanted = text.strip().lower()
    for query in QUERIES:
        if wanted in {str(query.number), query.short, query.name}:
            return query
    known = ", ".join(f"{query.short} {query.name}" for query in QUERIES)
    raise UsageError(f"there is no query {text!r}", f"the queries are: {known}")


def parse_queries(text: str) -> tuple[Query, ...]:
    """Queries separated by commas, in the given order, each at most once."""
    found = [find_query(part) for part in text.split(",") if part.strip()]
    if not found:
        raise UsageError("no query is named", "name one or several, as in --queries q0,q3")
    return tuple(dict.fromkeys(found))


def run_of(run_id: str, query: Query) -> str:
    """The `<run>` of topic names: queries follow one another, each with topics of its own."""
    return f"{run_id}-{query.short}"


def rehearsal_of(run: str) -> str:
    """Under which name the topics of a query's rehearsal are recorded, while it lasts."""
    return f"{run}.rehearsal"


def source_topic(prefix: str, run: str, stream: int) -> str:
    """The topic of a source stream."""
    return f"{prefix}-{run}-{stream}"


def sink_topic(prefix: str, run: str, query: Query) -> str:
    """The topic that holds a query's answers."""
    return f"{prefix}-{run}-{query.name}"


def topics_of(prefix: str, run: str, query: Query) -> dict[str, str]:
    """Role (`source-1` … `sink`) to topic name, for one query of one run."""
    topics = {f"source-{stream}": source_topic(prefix, run, stream) for stream in query.streams}
    if query.sink:
        topics["sink"] = sink_topic(prefix, run, query)
    return topics
