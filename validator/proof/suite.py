"""The mutation suite: which mutations each query has, and their score."""

from collections.abc import Iterator
from random import Random

from validator.proof import recordwise, special
from validator.proof.case import Mutation, check, fresh

# Of query 2 another input is another window: what changes inputs has mutations of its own.
_WINDOWS_CHANGE = {
    recordwise.deliver_twice,
    recordwise.lose_an_id,
    recordwise.break_a_source_record,
}
SUITE: dict[str, list[Mutation]] = {
    "q0": recordwise.MUTATIONS,
    "q1": [recordwise.nothing, *special.STATUS],
    "q2": [
        *(one for one in recordwise.MUTATIONS if one not in _WINDOWS_CHANGE),
        *special.OUTLIERS,
    ],
    "q3": recordwise.MUTATIONS,
    "q4": [*recordwise.MUTATIONS, *special.POWER],
    "q5": [recordwise.nothing, *special.STAMPING],
}


def failures(query: str, mutate: Mutation, rounds: int, first: int = 0) -> Iterator[str]:
    """What went wrong in so many seeded rounds of a mutation; nothing where all verdicts are right.

    The seed is that of the mutation's name, the query and the round, so that each can be repeated.
    """
    for number in range(first, first + rounds):
        seed = f"{mutate.__name__} {query} {number}"
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        case = fresh(query, random)
        mutate(case, random)
        problem = check(case)
        if problem is not None:
            yield f"{seed}: {problem}"
