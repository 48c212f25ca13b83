"""The quick part of the mutation suite; `benchmarks/mutations.py` runs thousands."""

import pytest

from validator.proof.case import Mutation
from validator.proof.suite import SUITE, failures

ROUNDS = 5
CASES = [(query, mutate) for query, mutations in SUITE.items() for mutate in mutations]


@pytest.mark.parametrize(
    ("query", "mutate"), CASES, ids=[f"{query}-{mutate.__name__}" for query, mutate in CASES]
)
def test_the_verdict_survives(query: str, mutate: Mutation) -> None:
    assert list(failures(query, mutate, ROUNDS)) == []
