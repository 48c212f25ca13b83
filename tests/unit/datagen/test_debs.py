import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from datagen import debs, sensors
from datagen.parameters import Parameters
from espbench.errors import InputError


@pytest.fixture(scope="module")
def ours() -> list[bytes]:
    """Rows with the shape of the real ones: without the workplace id."""
    data, _rows = sensors.render(Parameters(seed=5), 1, 0, 400)
    return [line.rpartition(b"\t")[0] for line in data.splitlines()]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    def writer(data: bytes) -> Path:
        path = tmp_path / "DEBS2012.txt"
        path.write_bytes(data)
        return path

    return writer


Write = Callable[[bytes], Path]


def read(path: Path, limit: int | None = None, block_bytes: int = 5_000) -> tuple[bytes, int]:
    blocks = list(debs.read_blocks(path, 2, limit, block_bytes))
    return b"".join(data for data, _rows in blocks), sum(rows for _data, rows in blocks)


@pytest.mark.parametrize("block_bytes", [200, 5_000, 1 << 20])
@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_real_rows_lose_cr_and_gain_the_workplace(
    ours: list[bytes], write: Write, end: bytes, block_bytes: int
) -> None:
    data, rows = read(write(end.join(ours) + end), block_bytes=block_bytes)
    assert rows == 400
    assert data == b"".join(line + b"\t2\n" for line in ours)


def test_gzip_and_a_last_line_without_end(ours: list[bytes], write: Write) -> None:
    data, rows = read(write(gzip.compress(b"\r\n".join(ours))))
    assert rows == 400
    assert data.splitlines()[-1] == ours[-1] + b"\t2"


@pytest.mark.parametrize("limit", [1, 27, 399, 400, 500])
def test_no_more_rows_than_asked_for(ours: list[bytes], write: Write, limit: int) -> None:
    data, rows = read(write(b"\r\n".join(ours) + b"\r\n"), limit)
    assert rows == min(limit, 400)
    assert data.count(b"\n") == rows


def change(column: int, value: bytes) -> Callable[[bytes], bytes]:
    def changed(line: bytes) -> bytes:
        fields = line.split(b"\t")
        fields[column - 1] = value
        return b"\t".join(fields)

    return changed


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda line: line + b"\t1", "57 columns instead of 56"),
        (lambda line: line.rpartition(b"\t")[0], "55 columns instead of 56"),
        (lambda _line: b"", "1 columns instead of 56"),
        (lambda line: line.replace(b"\t", b","), "1 columns instead of 56"),
        (change(3, b"x"), "column 3 is not an integer: 'x'"),
        (change(4, b""), "column 4 is not an integer: ''"),
        (change(5, b"81.5"), "column 5 is not an integer: '81.5'"),
        (change(5, b"8-1"), "column 5 is not an integer: '8-1'"),
        (change(6, b"-"), "column 6 is not an integer: '-'"),
        (change(56, b""), "column 56 is not an integer: ''"),
        (change(56, b"-"), "column 56 is not an integer: '-'"),
        (change(1, b""), "column 1 is not a time: ''"),
        (change(1, b"2012-02-22 16:46:28"), "column 1 is not a time: '2012-02-22 16:46:28'"),
        (change(1, b"2012-02-22T16:46:2x.9670320+00:00"), "column 1 is not a time"),
        (change(4, b"\xff\xfe"), "not UTF-8"),
        (change(4, "٣".encode()), "column 4 is not an integer"),
    ],
)
@pytest.mark.parametrize("place", [0, 123, 399])
def test_a_wrong_line_is_named(
    ours: list[bytes],
    write: Write,
    damage: Callable[[bytes], bytes],
    reason: str,
    place: int,
) -> None:
    lines = list(ours)
    lines[place] = damage(lines[place])
    path = write(b"\r\n".join(lines) + b"\r\n")
    with pytest.raises(InputError) as caught:
        read(path)
    assert f"{path}, line {place + 1}: {reason}" in caught.value.cause


def test_the_first_of_several_wrong_lines_is_named(ours: list[bytes], write: Write) -> None:
    lines = list(ours)
    lines[20] = change(7, b"?")(lines[20])
    lines[10] = change(1, b"?")(lines[10])
    lines[30] = b"short"
    with pytest.raises(InputError, match=r"line 11: column 1"):
        read(write(b"\n".join(lines)), block_bytes=1 << 20)


def test_negative_numbers_and_other_time_zones_are_fine(ours: list[bytes], write: Write) -> None:
    lines = list(ours)
    lines[7] = change(3, b"-12")(change(1, b"2012-02-22T16:46:28.967Z")(lines[7]))
    assert read(write(b"\n".join(lines)))[1] == 400


def test_an_empty_a_missing_and_a_damaged_file(ours: list[bytes], write: Write) -> None:
    with pytest.raises(InputError, match="is empty"):
        read(write(b""))
    with pytest.raises(InputError, match="cannot read"):
        read(Path("/nowhere/DEBS2012.txt"))
    with pytest.raises(InputError, match="damaged gzip"):
        read(write(gzip.compress(b"\n".join(ours))[:-40]))
    with pytest.raises(InputError, match="a line of more than"):
        read(write(b"x" * 40_000))


def test_a_fingerprint_tells_files_apart(write: Write) -> None:
    assert debs.fingerprint(write(b"a")) != debs.fingerprint(write(b"b"))
    with pytest.raises(InputError, match="cannot read"):
        debs.fingerprint(Path("/nowhere/DEBS2012.txt"))
