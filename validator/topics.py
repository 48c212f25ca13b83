"""One captured topic: where its records are, and whether all of them are there."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from validator.batches import Batch
from validator.evidence import SHOWN_PER_FILE, Evidence
from validator.jsonlines import read_json_lines
from validator.packed import Packed
from validator.parquetfile import PARQUET_MAGIC, read_parquet
from validator.records import Bools, Ints


@dataclass(frozen=True, slots=True)
class Claim:
    """What somebody declared about a topic file; None and empty where nobody did.

    `complete`: the range was read to its end, so that an offset without a record holds none.
    `ranges`: partition to first offset and the offset after the last.
    """

    name: str | None = None
    log_append_time: bool | None = None
    complete: bool | None = None
    transactional: bool = False
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicFile:
    """A file that holds the records of one topic, and what is declared about it."""

    role: str
    path: Path
    claim: Claim = Claim()

    @property
    def shown(self) -> str:
        """How messages call the file."""
        return str(self.path)


@dataclass(slots=True)
class Places:
    """Where records are and when they came, packed."""

    partition: Packed = field(default_factory=Packed)
    offset: Packed = field(default_factory=Packed)
    timestamp_ms: Packed = field(default_factory=Packed)


@dataclass(frozen=True, slots=True)
class Topic:
    """Where every record of a topic is, in the order of the file; no offset occurs twice.

    `partition`, `offset` and `timestamp_ms` are held packed: each look at one makes the array anew.

    `stamped`: every timestamp is the broker's LogAppendTime. `late_start`: the file begins after
    offset 0 though nothing says that the topic does, so that what is absent may stand before it.
    """

    name: str
    places: Places
    stamped: bool
    transactional: bool
    late_start: bool
    backwards: int
    listed_partitions: tuple[int, ...]
    evidence: Evidence
    file: TopicFile
    # Which records of the file are those of the topic; None: all of them.
    keep: Bools | None = None

    def __len__(self) -> int:
        return len(self.places.offset)

    @property
    def late_words(self) -> str:
        """Why a late start leaves open what is missing."""
        return f"{self.evidence.file} begins after offset 0: what is missing may stand before it"

    @property
    def partition(self) -> Ints:
        """The partition of each record."""
        return self.places.partition.all()

    @property
    def offset(self) -> Ints:
        """The offset of each record."""
        return self.places.offset.all()

    @property
    def timestamp_ms(self) -> Ints:
        """The timestamp of each record."""
        return self.places.timestamp_ms.all()

    def read_again(self, rows: Iterable[int]) -> dict[int, tuple[bytes | None, bytes | None]]:
        """Key and value of some records, which are not held: from the file, by row."""
        wanted = np.unique(np.fromiter(rows, dtype=np.int64))
        in_file = wanted if self.keep is None else np.flatnonzero(self.keep)[wanted]
        found: dict[int, tuple[bytes | None, bytes | None]] = {}
        begin = 0
        for batch in read_batches(self.file, Evidence(self.file.shown)) if len(wanted) else ():
            for place in range(*np.searchsorted(in_file, [begin, begin + len(batch)]).tolist()):
                row = int(in_file[place]) - begin
                found[int(wanted[place])] = (batch.key[row].as_py(), batch.value[row].as_py())
            begin += len(batch)
            if len(found) == len(wanted):
                break
        return found


def read_batches(file: TopicFile, evidence: Evidence) -> Iterator[Batch]:
    """The records of a topic file; its format is told by its content, not by its name."""
    try:
        with file.path.open("rb") as opened:
            begin = opened.read(len(PARQUET_MAGIC))
    except OSError as error:
        evidence.add(f"cannot be read: {error.strerror or error}")
        return
    if begin == PARQUET_MAGIC:
        yield from read_parquet(file.path, evidence)
    elif not begin and file.path.suffix in {".parquet", ".gz"}:
        evidence.add(f"torn: an empty file is no {file.path.suffix[1:]} file")
    else:
        yield from read_json_lines(file.path, evidence)


@dataclass(slots=True)
class TopicBuilder:
    """Collects where the records of a topic are, batch by batch."""

    file: TopicFile
    evidence: Evidence
    places: Places = field(default_factory=Places)
    stamped: bool = True
    name: str | None = None

    def add(self, batch: Batch) -> None:
        """Take note of one batch."""
        self.places.partition.add(batch.partition)
        self.places.offset.add(batch.offset)
        self.places.timestamp_ms.add(batch.timestamp_ms)
        self.stamped &= batch.stamped
        self.name = self.name or batch.topic

    def finish(self) -> tuple[Topic, Bools | None]:
        """The topic, and which of the collected records it keeps (None: all of them)."""
        places = self.places
        partition, offset = places.partition.all(), places.offset.all()
        order = order_of(partition, offset)
        keep = self._without_repeats(partition, offset, order)
        if keep is not None:
            partition, offset = partition[keep], offset[keep]
            stamps = places.timestamp_ms.all()[keep]
            places = Places(Packed.of(partition), Packed.of(offset), Packed.of(stamps))
            order = order_of(partition, offset)
        claim = self.file.claim
        declared = claim.log_append_time
        late_start = check_offsets(partition, offset, order, claim, self.evidence)
        del offset
        topic = Topic(
            name=claim.name or self.name or self.file.path.name,
            places=places,
            stamped=self.stamped and declared is not False,
            transactional=claim.transactional,
            late_start=late_start,
            backwards=_backwards(partition, places.timestamp_ms.all(), order),
            listed_partitions=tuple(claim.ranges),
            evidence=self.evidence,
            file=self.file,
            keep=keep,
        )
        return topic, keep

    def _without_repeats(self, partition: Ints, offset: Ints, order: Ints | None) -> Bools | None:
        sorted_partition = partition if order is None else partition[order]
        sorted_offset = offset if order is None else offset[order]
        again = np.zeros(len(offset), dtype=np.bool_)
        again[1:] = sorted_partition[1:] == sorted_partition[:-1]
        again[1:] &= sorted_offset[1:] == sorted_offset[:-1]
        if not again.any():
            return None
        first = int(np.flatnonzero(again)[0])
        self.evidence.add(
            f"{int(again.sum()):,} offsets occur more than once, the first is partition "
            f"{sorted_partition[first]} offset {sorted_offset[first]}: not the file of one topic"
        )
        keep = np.ones(len(offset), dtype=np.bool_)
        keep[again if order is None else order[again]] = False
        return keep


def check_offsets(
    partition: Ints, offset: Ints, order: Ints | None, claim: Claim, evidence: Evidence
) -> bool:
    """Add a problem for every offset range that should be there and is not.

    Returns True where the file merely begins after offset 0 and nobody declared a range.
    """
    _check_claim(partition, offset, claim, evidence)
    if claim.complete is False:
        evidence.add("the capture says that this topic was not read completely")
        return False
    if claim.complete or claim.transactional:
        return False
    late = False
    sorted_partition = partition if order is None else partition[order]
    sorted_offset = offset if order is None else offset[order]
    firsts = np.flatnonzero(np.diff(sorted_partition, prepend=-1))
    numbers = sorted_partition[firsts]
    bounds = [*firsts.tolist(), len(offset)]
    found = {
        int(number): sorted_offset[bounds[index] : bounds[index + 1]]
        for index, number in enumerate(numbers)
    }
    for number in sorted(found.keys() | claim.ranges.keys()):
        offsets = found.get(number, sorted_offset[:0])
        begin, end = claim.ranges.get(number, (None, None))
        if not len(offsets):
            if begin is not None and end is not None and begin < end:
                evidence.add(_gap(number, begin, end))
            continue
        if begin is not None and begin < offsets[0]:
            evidence.add(_gap(number, begin, int(offsets[0])))
        late |= begin is None and int(offsets[0]) > 0
        jumps = np.flatnonzero(offsets[1:] > offsets[:-1] + 1)
        for jump in jumps[:SHOWN_PER_FILE]:
            evidence.add(_gap(number, int(offsets[jump]) + 1, int(offsets[jump + 1])))
        evidence.more += len(jumps[SHOWN_PER_FILE:])
        if end is not None and offsets[-1] + 1 < end:
            evidence.add(_gap(number, int(offsets[-1]) + 1, end))
    return late


def _check_claim(partition: Ints, offset: Ints, claim: Claim, evidence: Evidence) -> None:
    """A file that holds what the capture does not list is not the file of that capture."""
    if not claim.ranges:
        return
    listed = np.array(list(claim.ranges), dtype=np.int64)
    foreign = np.flatnonzero(~np.isin(partition, listed))
    if len(foreign):
        evidence.add(
            f"{len(foreign):,} records of partitions that the capture does not list, the first is "
            f"partition {partition[foreign[0]]} offset {offset[foreign[0]]}"
        )


def _gap(partition: int, begin: int, end: int) -> str:
    which = f"offset {begin} is" if end - begin == 1 else f"offsets {begin} to {end - 1} are"
    return f"partition {partition}: {which} missing"


def order_of(partition: Ints, offset: Ints) -> Ints | None:
    """The order by the first and then the second, or None where they are in it already."""
    rising = partition[1:] > partition[:-1]
    rising |= (partition[1:] == partition[:-1]) & (offset[1:] > offset[:-1])
    return None if rising.all() else np.lexsort((offset, partition))


def _backwards(partition: Ints, timestamp_ms: Ints, order: Ints | None) -> int:
    """How often a record is stamped before the one in front of it in its partition."""
    sorted_partition = partition if order is None else partition[order]
    stamps = timestamp_ms if order is None else timestamp_ms[order]
    earlier = (sorted_partition[1:] == sorted_partition[:-1]) & (stamps[1:] < stamps[:-1])
    return int(earlier.sum())
