"""Garbage collection and heap of a JVM, without asking the JVM.

A HotSpot JVM keeps its counters in a file that it maps into memory, `hsperfdata_<user>/<pid>` below
`/tmp`; `jstat` reads nothing else. The layout is that of `sun.misc.Perf`, version 2: a header, then
entries of name and value. A JVM started with -XX:-UsePerfData has no such file.
"""

import contextlib
import mmap
import pwd
import re
import struct
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"\xca\xfe\xc0\xc0"
_HEADER = "4sBBBBiiqii"
_ENTRY = "iiiBBBBi"
_GC_TIME = re.compile(r"sun\.gc\.collector\.\d+\.time")
_USED = re.compile(r"sun\.gc\.generation\.\d+\.space\.\d+\.used")
_FREQUENCY = "sun.os.hrt.frequency"
_LONG = ord("J")


@dataclass(slots=True)
class JvmCounters:
    """The open counters of one JVM; reading them costs microseconds."""

    memory: mmap.mmap
    order: str
    ticks_per_ms: float
    gc_times: list[int]
    heap_uses: list[int]

    @classmethod
    def of(cls, pid: int) -> "JvmCounters | None":
        """The counters of a running JVM; None where it has none, or not yet."""
        path = file_of(pid)
        try:
            with path.open("rb") as file:
                memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        with contextlib.suppress(struct.error, UnicodeDecodeError, IndexError):
            counters = _index(memory)
            if counters:
                return counters
        memory.close()
        return None

    def gc_ms(self) -> float:
        """Milliseconds spent in collections since the JVM's start."""
        return sum(self._long(place) for place in self.gc_times) / self.ticks_per_ms

    def heap_bytes(self) -> int:
        """Heap in use; G1 brings this up to date at each collection only."""
        return sum(self._long(place) for place in self.heap_uses)

    def close(self) -> None:
        """Let go of the file."""
        self.memory.close()

    def _long(self, place: int) -> int:
        value: int = struct.unpack_from(f"{self.order}q", self.memory, place)[0]
        return value


def file_of(pid: int, proc: Path = Path("/proc")) -> Path:
    """Where the JVM of this pid keeps its counters, seen through its own root directory."""
    home = proc / str(pid)
    try:
        user = pwd.getpwuid(home.stat().st_uid).pw_name
        status = (home / "status").read_text(encoding="utf-8", errors="replace")
    except (OSError, KeyError):
        return home / "no-counters"
    # In a container the file has the number that the JVM itself knows, the last of these.
    numbers = re.search(r"^NSpid:\s+(.+)$", status, re.MULTILINE)
    inner = numbers.group(1).split()[-1] if numbers else str(pid)
    return home / "root" / "tmp" / f"hsperfdata_{user}" / inner


def _index(memory: mmap.mmap) -> JvmCounters | None:
    if memory[:4] != _MAGIC:
        return None
    order = "<" if memory[4] else ">"
    _, _, major, _, accessible, _, _, _, place, count = struct.unpack_from(order + _HEADER, memory)
    if major != 2 or not accessible:
        return None
    longs = {}
    for _ in range(count):
        length, name_at, vector, kind, _, _, _, data_at = struct.unpack_from(
            order + _ENTRY, memory, place
        )
        if length <= 0:
            return None
        if kind == _LONG and not vector:
            end = memory.find(b"\0", place + name_at)
            longs[memory[place + name_at : end].decode("ascii")] = place + data_at
        place += length
    if _FREQUENCY not in longs:
        return None
    per_s = struct.unpack_from(f"{order}q", memory, longs[_FREQUENCY])[0]
    return JvmCounters(
        memory,
        order,
        per_s / 1_000,
        [at for name, at in longs.items() if _GC_TIME.fullmatch(name)],
        [at for name, at in longs.items() if _USED.fullmatch(name)],
    )
