"""Fingerprints tell texts apart wherever these stand."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from validator.fingerprints import LONG, id_and_line, whole_values

TEXTS = st.none() | st.binary(max_size=20) | st.text("\0a;", max_size=40).map(str.encode)


def prints(texts: list[bytes | None]) -> list[int]:
    found: list[int] = whole_values(pa.array(texts, type=pa.binary())).tolist()
    return found


@given(st.lists(TEXTS, max_size=20))
def test_equal_texts_and_no_others_have_equal_fingerprints(texts: list[bytes | None]) -> None:
    together = prints(texts)
    assert [prints([text])[0] for text in texts] == together
    assert len(set(together)) == len(set(texts))


def test_texts_of_any_length() -> None:
    texts: list[bytes | None] = [None, b"", *(b"x" * count for count in range(1, 60))]
    texts += [b"x" * count for count in range(LONG - 10, LONG + 10)]
    altered: list[bytes | None] = [b"y" + text[1:] for text in texts if text]
    assert len(set(prints(texts + altered))) == len(texts) + len(altered)
    assert prints(texts)[::-1] == prints(texts[::-1])


def test_an_altered_byte_is_seen() -> None:
    text = bytes(range(256))
    altered = [
        bytes([*text[:at], text[at] ^ bit, *text[at + 1 :]])
        for at in range(256)
        for bit in (1, 128)
    ]
    assert len(set(prints([text, *altered]))) == 513


@given(st.lists(st.tuples(st.text("01", max_size=9), st.text("01;", max_size=9)), max_size=20))
def test_id_and_line_do_without_what_is_between(texts: list[tuple[str, str]]) -> None:
    source = pa.array([f"{number};99;{line}".encode() for number, line in texts], type=pa.binary())
    sink = pa.array([f"{number};{line}".encode() for number, line in texts], type=pa.binary())
    assert np.array_equal(id_and_line(source, 2), id_and_line(sink, 1))
    assert len(set(id_and_line(sink, 1).tolist())) == len(set(texts))


def test_what_has_no_line_is_like_no_line() -> None:
    values = pa.array([b"1;2", None, b"", b"1;2;x"], type=pa.binary())
    found = id_and_line(values, 2).tolist()
    assert found[0] == found[1] == found[2] != found[3]
