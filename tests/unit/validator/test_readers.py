import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from validator import jsonlines
from validator.batches import Batch
from validator.evidence import Evidence
from validator.synthetic import CREATE, Plan, Record, Topic, source
from validator.topics import TopicFile, read_batches

WHOLE = source(Plan(records=30))


def read(path: Path) -> tuple[list[Record], list[str], list[Batch]]:
    evidence = Evidence("f")
    batches = list(read_batches(TopicFile("sink", path), evidence))
    records = [
        Record(int(p), int(o), int(t), v, k)
        for b in batches
        for p, o, t, v, k in zip(
            b.partition,
            b.offset,
            b.timestamp_ms,
            b.value.to_pylist(),
            b.key.to_pylist(),
            strict=True,
        )
    ]
    return records, evidence.lines(), batches


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_every_format_gives_the_same_records(tmp_path: Path) -> None:
    topic = Topic("t", list(WHOLE.records))
    topic.add(5, None)
    topic.add(6, b'\xff\xfe\x00;"\\\n\r\t\x01', key=b"k\xc3\xa9")
    topic.add(7, "ü\u2028".encode(), key=b"")
    files = [
        topic.write_json_lines(tmp_path / "a.txt"),
        topic.write_json_lines(tmp_path / "b.txt", zipped=True),
        topic.write_parquet(tmp_path / "c.txt"),
    ]
    for file in files:
        records, problems, batches = read(file)
        assert records == topic.records
        assert problems == []
        assert all(batch.stamped for batch in batches)


def test_small_blocks_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for zipped in (False, True):
        file = WHOLE.write_json_lines(tmp_path / "a", zipped=zipped)
        for size in (100, 1_000, 3_000):
            monkeypatch.setattr(jsonlines, "BLOCK_BYTES", size)
            records, problems, _ = read(file)
            assert (records, problems) == (WHOLE.records, [])


def test_fast_and_slow_reading_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = WHOLE.write_json_lines(tmp_path / "a")
    fast = read(file)[0]
    monkeypatch.setattr(jsonlines, "_fast", lambda _block: None)
    assert read(file)[0] == fast


def test_other_fields_escapes_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    line = {
        "headers": ["a", "b", "c", None],
        "payload": "x\u00e9",
        "ts": 5,
        "key": None,
        "tstype": "logappend",
        "offset": 3,
        "partition": 2,
        "broker": 1,
        "topic": "t",
    }
    content = "\ufeff" + json.dumps(line) + "\r\n\n" + json.dumps(line | {"offset": 4})
    records, problems, _ = read(written(tmp_path / "a", content.encode()))
    assert problems == []
    assert records == [Record(2, 3, 5, "xé".encode()), Record(2, 4, 5, "xé".encode())]


def test_python_surrogates_are_bytes(tmp_path: Path) -> None:
    payload = b"\xff\x80".decode("utf-8", "surrogateescape")
    line = json.dumps({"partition": 0, "offset": 0, "payload": payload}).encode()
    assert read(written(tmp_path / "a", line))[0][0].value == b"\xff\x80"


@pytest.mark.parametrize("cut", [1, 20, 60, 150])
def test_a_torn_last_line_is_named_and_the_rest_is_read(tmp_path: Path, cut: int) -> None:
    content = WHOLE.json_lines()[: -1 - cut]
    records, problems, _ = read(written(tmp_path / "a", content))
    assert records == WHOLE.records[:-1]
    (problem,) = problems
    assert problem.startswith("f, line 30: torn")


def test_a_file_without_a_last_line_end_is_whole(tmp_path: Path) -> None:
    records, problems, _ = read(written(tmp_path / "a", WHOLE.json_lines()[:-1]))
    assert (records, problems) == (WHOLE.records, [])


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"hello", "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"a": 1}', "no partition and no offset and no payload"),
        (b'{"partition": 0, "offset": 1}', "no payload"),
        (b'{"partition": "0", "offset": 1, "payload": "x"}', "partition is not an integer"),
        (b'{"partition": 0, "offset": 1.0, "payload": "x"}', "offset is not an integer"),
        (b'{"partition": 0, "offset": true, "payload": "x"}', "offset is not an integer"),
        (b'{"partition": 0, "offset": -1, "payload": "x"}', "offset is negative"),
        (b'{"partition": 0, "offset": 99999999999999999999, "payload": "x"}', "not an integer"),
        (b'{"partition": 0, "offset": 1, "payload": 5}', "payload is neither"),
        (b'{"partition": 0, "offset": 1, "payload": "x", "key": 5}', "key is neither"),
        (b'{"partition": 0, "offset": 1, "payload": "x", "ts": "5"}', "ts is not an integer"),
        (b'{"partition": 0, "offset": 1, "payload": "x"} {"a": 1}', "not JSON"),
        (b'{"payload": ' + b"[" * 100_000, "not JSON (nested too deeply)"),
        (b'{"offset": ' + b"9" * 10_000 + b"}", "not JSON"),
        (b"\x00\x01\x02", "not JSON"),
        (b"null", "not a JSON object"),
        (b'null{"partition": 0, "offset": 1, "payload": "x"}', "not JSON"),
        (b'{"partition": 0, "offset": 1, "payload": "x"}null', "not JSON"),
        (b'{"partition": 0, "offset": 1, "payload": "x", "a": [[{', "not JSON"),
    ],
)
def test_a_bad_line_is_named_and_the_others_are_read(tmp_path: Path, bad: bytes, said: str) -> None:
    lines = WHOLE.json_lines().splitlines(keepends=True)
    content = b"".join([*lines[:10], bad + b"\n", *lines[10:]])
    records, problems, _ = read(written(tmp_path / "a", content))
    assert records == WHOLE.records
    (problem,) = problems
    assert problem.startswith("f, line 11: ")
    assert said in problem


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    records, problems, _ = read(written(tmp_path / "a", b"no\n" * 1_000))
    assert records == []
    assert len(problems) == 6
    assert "995 more" in problems[-1]


def test_torn_and_damaged_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(WHOLE.json_lines())
    for cut in (1, 9, 400, len(whole) - 5):
        records, problems, _ = read(written(tmp_path / "a", whole[:-cut]))
        assert problems
        assert records == WHOLE.records[: len(records)]
    records, problems, _ = read(written(tmp_path / "a", whole[:-6] + b"\xaa" + whole[-5:]))
    assert any("gzip" in problem for problem in problems)
    records, problems, _ = read(written(tmp_path / "a", whole + b"\0" * 600 + whole))
    assert (records, problems) == (WHOLE.records * 2, [])


def test_a_gigantic_line_stops_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "MAX_LINE_BYTES", 1 << 20)
    monkeypatch.setattr(jsonlines, "BLOCK_BYTES", 1 << 16)
    bomb = gzip.compress(WHOLE.json_lines() + b"a" * (64 << 20))
    records, problems, _ = read(written(tmp_path / "a", bomb))
    assert records == WHOLE.records
    assert "longer than" in problems[0]


def test_empty_files(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a.jsonl", b"")) == ([], [], [])
    assert read(written(tmp_path / "b.jsonl", gzip.compress(b""))) == ([], [], [])
    assert "torn" in read(written(tmp_path / "c.parquet", b""))[1][0]
    assert "torn" in read(written(tmp_path / "c.gz", b""))[1][0]


def test_timestamps_that_are_not_the_brokers(tmp_path: Path) -> None:
    topic = Topic("t", list(WHOLE.records), tstype=CREATE)
    assert not read(topic.write_json_lines(tmp_path / "a"))[2][0].stamped
    lines = WHOLE.json_lines().splitlines(keepends=True)
    mixed = lines[0].replace(b"logappend", b"create") + b"".join(lines[1:])
    assert not read(written(tmp_path / "b", mixed))[2][0].stamped
    without = b'{"partition":0,"offset":0,"key":null,"payload":"x"}\n'
    records, problems, batches = read(written(tmp_path / "c", without))
    assert problems == []
    assert records[0].timestamp_ms == -1
    assert not batches[0].stamped


def test_damaged_parquet(tmp_path: Path) -> None:
    whole = WHOLE.write_parquet(tmp_path / "a").read_bytes()
    for content in (whole[:-10], whole[:100], b"PAR1", whole[: len(whole) // 2] + b"x" * 8):
        records, problems, _ = read(written(tmp_path / "b", content))
        assert records == []
        assert len(problems) == 1


def test_a_damaged_row_group_leaves_the_others(tmp_path: Path) -> None:
    table = pq.read_table(WHOLE.write_parquet(tmp_path / "a"))
    pq.write_table(
        table, tmp_path / "b", row_group_size=10, compression="none", write_page_checksum=True
    )
    content = bytearray((tmp_path / "b").read_bytes())
    place = content.find(WHOLE.records[15].value or b"?")
    content[place + 100] ^= 1
    records, problems, _ = read(written(tmp_path / "c", bytes(content)))
    assert records == WHOLE.records[:10] + WHOLE.records[20:]
    assert "row group 1 is damaged" in problems[0]


def test_foreign_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a")
    assert "no column partition" in read(tmp_path / "a")[1][0]
    table = pq.read_table(WHOLE.write_parquet(tmp_path / "b"))
    wrong = table.set_column(1, "offset", pa.array(["x"] * 30))
    pq.write_table(wrong, tmp_path / "c")
    assert "column offset is string" in read(tmp_path / "c")[1][0]
    holes = table.set_column(1, "offset", pa.array([None, *range(1, 30)], type=pa.int64()))
    pq.write_table(holes, tmp_path / "d")
    records, problems, _ = read(tmp_path / "d")
    assert len(records) == 29
    assert "1 rows without" in problems[0]


def test_parquet_of_others(tmp_path: Path) -> None:
    table = pq.read_table(WHOLE.write_parquet(tmp_path / "a"))
    others = pa.table(
        {
            "value": table["value"].cast(pa.string()).dictionary_encode(),
            "timestamp_ms": table["timestamp_ms"].cast(pa.timestamp("ms")),
            "offset": table["offset"].cast(pa.int32()),
            "partition": table["partition"].cast(pa.int64()),
            "more": table["offset"],
        }
    )
    pq.write_table(others, tmp_path / "b")
    records, problems, _ = read(tmp_path / "b")
    assert (records, problems) == (WHOLE.records, [])


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=200,
)
@given(st.data())
def test_no_bytes_can_raise(tmp_path: Path, data: st.DataObject) -> None:
    whole = data.draw(
        st.sampled_from(
            [
                WHOLE.json_lines()[:1_500],
                gzip.compress(WHOLE.json_lines()),
                WHOLE.write_parquet(tmp_path / "p").read_bytes(),
            ]
        )
    )
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=5))
        if not content:
            break
    read(written(tmp_path / "a", bytes(content)))
