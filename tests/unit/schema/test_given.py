"""Lines of the production-times stream as arrays: every row once, in the order of the keys."""

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from espbench.errors import InputError
from schema.given import ENDED, STARTED, read_given

LINE = st.tuples(
    st.integers(-3, 2**40), st.integers(1, 3), st.integers(1, 2), st.sampled_from([0, 1, 7])
)


def spelled(lines: list[tuple[int, ...]]) -> bytes:
    return b"".join(b"%d\t%d\t%d\t%d\n" % line for line in lines)


@drawn(st.lists(LINE | st.just((5, 1, 1, 0)) | st.just((5, 1, 1, 1)), max_size=40))
def test_every_row_comes_once_with_all_that_happened(lines: list[tuple[int, ...]]) -> None:
    wanted: dict[tuple[int, ...], int] = {}
    for *key, is_end in lines:
        what = {0: STARTED, 1: ENDED}.get(is_end, 0)
        wanted[tuple(key)] = wanted.get(tuple(key), 0) | what
    found = read_given([spelled(lines)])
    assert found.inputs == len(lines)
    assert found.keys.T.tolist() == [list(line[:3]) for line in lines]
    assert found.rows.T.tolist() == [[*key, what] for key, what in sorted(wanted.items())]


def test_blocks_need_not_end_with_lines() -> None:
    text = spelled([(1, 1, 1, 0), (2, 1, 1, 1)])
    parts = [text[index : index + 1] for index in range(len(text))]
    assert np.array_equal(read_given(parts).rows, read_given([text]).rows)


@pytest.mark.parametrize(
    "text", [b"1\t1\t1\n", b"1\t1\t1\t0\t0\n", b"x\t1\t1\t0\n", b"\n", b"1\t\t1\t0\n", b"\xff\n"]
)
def test_a_malformed_line_is_refused(text: bytes) -> None:
    with pytest.raises(InputError, match="production-times stream"):
        read_given([b"1\t1\t1\t0\n", text])
