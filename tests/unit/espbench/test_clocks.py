"""The clocks of other hosts."""

import sys

import pytest

from espbench.errors import ServiceError
from espbench.runs.clocks import PROGRAM, Round, ask, offset

MS = 1_000_000


def test_the_quickest_round_tells_the_offset_and_how_sure_it_is() -> None:
    rounds = [Round(0, 100 * MS, 50 * MS), Round(200 * MS, 206 * MS, 202 * MS)]
    found = offset(rounds)
    assert (found.offset_ms, found.uncertainty_ms) == (5.0, 1.0)


def test_a_clock_on_this_machine_is_ours() -> None:
    found = ask([sys.executable, "-c", PROGRAM])
    assert abs(found.offset_ms) <= found.uncertainty_ms + 0.001


def test_a_host_that_does_not_answer_is_named_with_its_words() -> None:
    with pytest.raises(ServiceError, match="no such host"):
        ask([sys.executable, "-c", "import sys; sys.exit('no such host')"])
