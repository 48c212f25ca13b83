"""Stream files are checked completely before anything is sent."""

from pathlib import Path

import numpy as np
import pytest

from espbench.errors import InputError
from sender import files
from sender.files import open_stream_file
from sender.testkit import sensor_row


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_rows_come_without_line_ends_and_start_again(
    tmp_path: Path, line_end: bytes, in_memory: bool
) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(line_end.join(sensor_row(i) for i in range(3)) + line_end)
    file = open_stream_file(path, 1, in_memory=in_memory)
    assert len(file) == 3
    assert file.rows_of(np.arange(1, 5)) == [sensor_row(i) for i in (1, 2, 0, 1)]


@pytest.mark.parametrize("stream", [1, 2])
def test_real_files_lack_the_workplace_and_get_it(tmp_path: Path, stream: int) -> None:
    path = tmp_path / "debs.txt"
    path.write_bytes(b"".join(sensor_row(i, columns=56) + b"\r\n" for i in range(4)))
    rows = open_stream_file(path, stream).rows_of(np.arange(4))
    assert rows == [sensor_row(i, columns=56) + b"\t%d" % stream for i in range(4)]


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    path = tmp_path / "pt.csv"
    path.write_bytes(b"1\t1\t1\t0\n1\t1\t1\t1")
    assert open_stream_file(path, 3).rows_of(np.arange(2)) == [b"1\t1\t1\t0", b"1\t1\t1\t1"]


def test_blocks_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(b"".join(sensor_row(i) + b"\r\n" for i in range(50)))
    whole = open_stream_file(path, 1).rows_of(np.arange(50))
    monkeypatch.setattr(files, "_BLOCK_BYTES", 300)
    for in_memory in (True, False):
        file = open_stream_file(path, 1, in_memory=in_memory)
        assert len(file) == 50
        assert file.rows_of(np.arange(50)) == whole
        assert file.rows_of(np.array([48, 1, 99, 50])) == [whole[i] for i in (48, 1, 49, 0)]


@pytest.mark.parametrize(
    ("content", "stream", "message"),
    [
        (b"", 1, "is empty"),
        (b"a\tb\n", 1, "line 1: 2 columns, expected 56 or 57"),
        (sensor_row(0) + b"\n\n" + sensor_row(1) + b"\n", 1, "line 2: 1 columns, expected 57"),
        (sensor_row(0) + b"\n" + sensor_row(1, 56) + b"\n", 1, "line 2: 56 columns, expected 57"),
        (sensor_row(0) + b"\n" + sensor_row(1)[:60], 1, "line 2"),
        (sensor_row(0) + b"\n" + sensor_row(1) + b"\xff\n", 1, "line 2: not UTF-8"),
        (sensor_row(0) + b"\n" + sensor_row(1, workplace=2) + b"\n", 1, "line 2: column 57"),
        (sensor_row(0) + b"\n", 2, "line 1: column 57 is not 2"),
        (b"1\t1\t1\t0\n1\t1\t1\n", 3, "line 2: 3 columns, expected 4"),
    ],
)
def test_a_broken_file_is_named_with_its_line(
    tmp_path: Path, content: bytes, stream: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(content)
    for block_bytes, in_memory in ((1, True), (1_000_000, True), (1, False)):
        monkeypatch.setattr(files, "_BLOCK_BYTES", block_bytes)
        with pytest.raises(InputError) as caught:
            open_stream_file(path, stream, in_memory=in_memory)
        assert message in caught.value.cause
        assert str(path) in caught.value.cause
        assert caught.value.remedy


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv: No such file"):
        open_stream_file(tmp_path / "nowhere.csv", 1)


@pytest.mark.parametrize("change", ["cut", "edited"])
def test_a_streamed_file_that_changes_meanwhile_is_noticed(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(b"".join(sensor_row(i) + b"\n" for i in range(50)))
    monkeypatch.setattr(files, "_BLOCK_BYTES", 1_000)
    file = open_stream_file(path, 1, in_memory=False)
    assert len(file.rows_of(np.arange(5))) == 5
    with path.open("r+b") as other:
        other.truncate(3_000) if change == "cut" else other.write(b"9" * 3_000)
    with pytest.raises(InputError, match=r"s\.csv, line \d+: the file was changed"):
        file.rows_of(np.arange(50))


def test_what_fits_into_memory_is_read_and_the_rest_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(sensor_row(0) + b"\n")
    assert isinstance(open_stream_file(path, 1), files.FileInMemory)
    monkeypatch.setattr(files, "_SHARE_OF_MEMORY", 1e-12)
    assert isinstance(open_stream_file(path, 1), files.FileOnDisk)
