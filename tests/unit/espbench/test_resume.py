"""What is left to do of a run that ended early."""

import pytest

from espbench.errors import UsageError
from espbench.names import QUERIES
from espbench.runs.plan import KEEPABLE, QUERY_STEPS, chosen
from espbench.runs.resume import Remains, remaining_work

IDENTITY, CHECK, OUTLIERS = QUERIES[:3]
ALL = (IDENTITY, CHECK, OUTLIERS)


def test_queries_with_a_verdict_are_left_alone_and_the_others_begun_anew() -> None:
    work = remaining_work(ALL, {"identity"}, {})
    assert [each.query for each in work] == [CHECK, OUTLIERS]
    assert all(each.steps == QUERY_STEPS for each in work)


def test_nothing_is_left_of_a_run_with_all_verdicts() -> None:
    assert remaining_work(ALL, {query.name for query in ALL}, {}, "capture") == []


@pytest.mark.parametrize(
    ("step", "found", "steps"),
    [
        ("capture", Remains(topics=True, sent=True), ("capture", "validate", "cleanup")),
        ("validate", Remains(captured=True), ("validate", "cleanup")),
        ("topics", Remains(), QUERY_STEPS),
    ],
)
def test_only_the_interrupted_query_goes_on_from_a_step(
    step: str, found: Remains, steps: tuple[str, ...]
) -> None:
    first, second = remaining_work(ALL, {"identity"}, {CHECK.name: found}, step)
    assert (first.query, first.steps) == (CHECK, steps)
    assert (second.query, second.steps) == (OUTLIERS, QUERY_STEPS)


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("capture", Remains(topics=True)),
        ("capture", Remains(sent=True)),
        ("validate", Remains(topics=True, sent=True)),
        ("send", Remains(topics=True, sent=True, captured=True)),
        ("nonsense", Remains()),
    ],
)
def test_a_step_that_lacks_what_it_needs_is_refused(step: str, found: Remains) -> None:
    with pytest.raises(UsageError, match=step):
        remaining_work(ALL, {"identity"}, {CHECK.name: found}, step)


def test_names_are_checked() -> None:
    assert chosen("topics, services", KEEPABLE, "part") == ("topics", "services")
    assert chosen(None, KEEPABLE, "part") == ()
    with pytest.raises(UsageError, match="captures"):
        chosen("topics,captures", KEEPABLE, "part")
