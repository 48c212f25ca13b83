"""Going on with a run that failed or was interrupted: what is left to do, and from which step."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from espbench.errors import UsageError
from espbench.names import Query
from espbench.runs.plan import QUERY_STEPS, Work

# Where one can begin with what is left of a query: at its beginning, or after its drain.
ENTRIES = ("topics", "capture", "validate")


@dataclass(frozen=True, slots=True)
class Remains:
    """What an attempt at a query left: topics, a sender's report, a whole capture."""

    topics: bool = False
    sent: bool = False
    captured: bool = False


def remaining_work(
    queries: Collection[Query],
    judged: Collection[str],
    remains: Mapping[str, Remains],
    from_step: str | None = None,
) -> list[Work]:
    """What is to be done: queries with a verdict are left alone, the others begun anew.

    `from_step` concerns the first query without a verdict, the one that was interrupted; raises
    `UsageError` where that step lacks what it needs.
    """
    left = [query for query in queries if query.name not in judged]
    if not left:
        return []
    first = Work(left[0])
    if from_step is not None:
        _check_entry(left[0], from_step, remains.get(left[0].name, Remains()))
        first = Work(left[0], QUERY_STEPS[QUERY_STEPS.index(from_step) :])
    return [first, *(Work(query) for query in left[1:])]


def _check_entry(query: Query, step: str, found: Remains) -> None:
    if step not in ENTRIES:
        raise UsageError(
            f"a query cannot be resumed from {step!r}",
            f"from: {', '.join(ENTRIES)}; Spark and sender must begin together",
        )
    lacking = {
        "topics": None,
        "capture": None
        if found.topics and found.sent
        else "its topics and the sender's report (a run keeps topics with --keep topics)",
        "validate": None if found.captured else "its capture",
    }[step]
    if lacking:
        raise UsageError(
            f"{query.name} cannot be resumed from {step}: {lacking} are gone"
            if step == "capture"
            else f"{query.name} cannot be resumed from {step}: {lacking} is missing",
            "resume without --from: the query is begun anew",
        )
