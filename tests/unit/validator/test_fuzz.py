"""Readers meet arbitrary bytes: they may find problems, they may not fail."""

import gzip
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from validator.evidence import Evidence
from validator.jsonlines import BYTE_ORDER_MARK
from validator.latency import PERCENTILES, carries, statistics
from validator.synthetic import Plan, errors_sink, source
from validator.tables import TABLES, read_table
from validator.topics import Claim, TopicBuilder, TopicFile, read_batches

PLAN = Plan(records=20)
LINES = source(PLAN).json_lines()
BOUNDED = settings(max_examples=150, derandomize=True)
PIECES = st.sampled_from(
    [
        *(b"", b"\n", b"{", b"}", b"[" * 300, b"null", b'"', b"\\", b"\xff", b"\0", b'"payload":5'),
        *(b'{"partition":0,"offset":1,"payload":null}', b"1e999", b"-1", b"9" * 5_000),
    ]
)


def parquet() -> bytes:
    with tempfile.TemporaryDirectory() as place:
        path = source(PLAN).write_parquet(Path(place) / "a.parquet")
        return path.read_bytes()


PARQUET = parquet()


def read(content: bytes) -> tuple[int, list[str]]:
    """How many records were read, and the problems."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "topic"
        path.write_bytes(content)
        file = TopicFile("sink", path, Claim())
        evidence = Evidence("f")
        builder = TopicBuilder(file, evidence)
        for batch in read_batches(file, evidence):
            builder.add(batch)
        topic, _ = builder.finish()
        late = ["begins late"] if topic.late_start else []
        return len(topic), evidence.lines() + late


def spoilt(content: bytes, place: int, length: int, piece: bytes) -> bytes:
    place %= len(content)
    return content[:place] + piece + content[place + length :]


CHANGES = st.tuples(st.integers(0, 10**6), st.integers(0, 200), PIECES | st.binary(max_size=40))


@BOUNDED
@given(st.binary(max_size=2_000))
def test_any_bytes(content: bytes) -> None:
    count, problems = read(content)
    assert count or problems or not content.removeprefix(BYTE_ORDER_MARK).strip()


@BOUNDED
@given(CHANGES)
def test_spoilt_lines(change: tuple[int, int, bytes]) -> None:
    count, problems = read(spoilt(LINES, *change))
    # Whatever is lost is told, by a bad line or by a gap; more than there was comes from nowhere.
    assert count <= 22
    assert count >= 20 or problems or change[0] % len(LINES) + change[1] >= len(LINES)


@BOUNDED
@given(CHANGES)
def test_spoilt_gzip(change: tuple[int, int, bytes]) -> None:
    count, problems = read(spoilt(gzip.compress(LINES), *change))
    assert count <= 22
    assert count == 20 or problems


@BOUNDED
@given(CHANGES)
def test_spoilt_parquet(change: tuple[int, int, bytes]) -> None:
    count, problems = read(spoilt(PARQUET, *change))
    assert count <= 20 or problems


@BOUNDED
@given(st.sampled_from(sorted(TABLES)), st.lists(PIECES | st.binary(max_size=30), max_size=8))
def test_spoilt_tables(name: str, pieces: list[bytes]) -> None:
    head = ",".join(TABLES[name]).encode()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "table.csv"
        path.write_bytes(head + b"\n" + b",".join(pieces))
        table = read_table(name, path)
        assert table.rows is not None or table.evidence.problems


@BOUNDED
@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=300))
def test_percentiles_are_those_of_numpy(values: list[int]) -> None:
    found = statistics(np.array(values))
    for name, percent in PERCENTILES.items():
        if carries(len(values), percent):
            wanted = np.percentile(np.array(values), float(percent), method="linear")
            assert np.isclose(found[name], wanted, rtol=1e-12, atol=1e-9)
        else:
            assert found[name] is None


def test_what_is_read_of_a_whole_file() -> None:
    assert read(LINES) == (20, [])
    assert read(gzip.compress(LINES)) == (20, [])
    assert read(PARQUET) == (20, [])
    assert len(errors_sink(source(PLAN), PLAN).records) < 20
