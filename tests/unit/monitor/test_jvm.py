"""A JVM's counters, from a file in its layout."""

import mmap
import struct
from pathlib import Path

import pytest

from espbench.monitor import jvm
from espbench.monitor.jvm import JvmCounters


def entry(order: str, name: str, value: int, kind: str = "J") -> bytes:
    text = name.encode() + b"\0"
    data_at = -(-(20 + len(text)) // 8) * 8
    head = struct.pack(f"{order}iiiBBBBi", data_at + 8, 20, 0, ord(kind), 0, 1, 2, data_at)
    return (head + text).ljust(data_at, b"\0") + struct.pack(f"{order}q", value)


def counters(order: str = "<", major: int = 2, entries: list[bytes] | None = None) -> bytes:
    found = entries or [
        entry(order, "sun.os.hrt.frequency", 1_000_000_000),
        entry(order, "sun.gc.collector.0.time", 30_000_000),
        entry(order, "sun.gc.collector.1.time", 12_000_000),
        entry(order, "sun.gc.collector.1.lastEntryTime", 99),
        entry(order, "sun.gc.generation.0.space.0.used", 1_000),
        entry(order, "sun.gc.generation.1.space.0.used", 500),
        entry(order, "sun.gc.generation.1.space.0.capacity", 9_999),
    ]
    head = b"\xca\xfe\xc0\xc0" + struct.pack(
        f"{order}BBBBiiqii", order == "<", major, 0, 1, 0, 0, 0, 32, len(found)
    )
    return head + b"".join(found)


def read(monkeypatch: pytest.MonkeyPatch, path: Path, content: bytes) -> JvmCounters | None:
    path.write_bytes(content)
    monkeypatch.setattr(jvm, "file_of", lambda _pid: path)
    return JvmCounters.of(1)


@pytest.mark.parametrize("order", ["<", ">"])
def test_collections_and_heap_are_summed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, order: str
) -> None:
    found = read(monkeypatch, tmp_path / "1", counters(order))
    assert found is not None
    assert (found.gc_ms(), found.heap_bytes()) == (42.0, 1_500)
    found.close()


def test_values_are_read_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "1"
    found = read(monkeypatch, path, counters())
    assert found is not None
    changed = counters().replace(struct.pack("<q", 30_000_000), struct.pack("<q", 40_000_000))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:] = changed
    assert found.gc_ms() == 52.0
    found.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xca\xfe",
        b"something else entirely, and long enough to be a header",
        counters(major=1),
        counters()[:60],
        counters(entries=[b"\0" * 40]),
        counters(entries=[entry("<", "sun.gc.collector.0.time", 1)]),
    ],
)
def test_a_torn_or_foreign_file_gives_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    assert read(monkeypatch, tmp_path / "1", content) is None


def test_a_process_that_is_gone_has_no_counters() -> None:
    assert JvmCounters.of(2**22 + 1) is None
