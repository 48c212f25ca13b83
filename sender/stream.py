"""One stream on its way: which records are due, their messages, and how late they were handed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sender.clients import Client
from sender.files import PRODUCTION_TIMES, StreamFile
from sender.lateness import LatenessHistogram
from sender.profiles import NS_PER_S
from sender.schedule import NS_PER_MS, Schedule

Ids: TypeAlias = npt.NDArray[np.int64]

# Due times are computed for so many records at once; the search of a curved profile takes some
# milliseconds for them, which must not be seen in the lateness.
_CHUNK = 4_096
# A backlog is worked off in bites, so that other streams and Ctrl-C get their turn.
MAX_AT_ONCE = 2_000


class StreamReplay:
    """The state of one stream's replay. Times are nanoseconds after the common start."""

    def __init__(
        self,
        *,
        file: StreamFile,
        topic: str,
        partitions: int,
        schedule: Schedule,
        start_ms: int,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        """`part` (k, P): of all partitions only those that are k modulo P are sent here."""
        self.file = file
        self.topic = topic
        self.partitions = partitions
        self.schedule = schedule
        self.total = schedule.total if file.repeats else min(schedule.total, len(file))
        self.next_id = 0
        self.stalls = 0
        self.lateness = LatenessHistogram()
        self.last_handed_ns = 0
        self.seconds: Counter[int] = Counter()
        self._start_ms = start_ms
        self._part = part
        self._chunk_first = 0
        self._chunk = schedule.due_ns(0, min(_CHUNK, self.total))
        self._waiting: list[tuple[int, list[bytes]]] = []
        self._waiting_ids = (0, 0)
        self._waiting_due_ns = self._chunk[:0]

    @property
    def ended_early(self) -> bool:
        """The file ends before the schedule does."""
        return self.total < self.schedule.total

    @property
    def done(self) -> bool:
        """Everything was handed over."""
        return self.next_id >= self.total

    @property
    def next_due_ns(self) -> int:
        """When the next record is due; only where the stream is not done."""
        return int(self._due(self.next_id)[0])

    @property
    def prepared(self) -> bool:
        """Messages wait for room in the client's queue."""
        return bool(self._waiting)

    @property
    def full_bite(self) -> bool:
        """The last bite was as big as a bite may be: more is probably due."""
        first, stop = self._waiting_ids
        return stop - first >= MAX_AT_ONCE

    def due_by(self, now_ns: int) -> int:
        """The id after the last one to be handed over at this moment, a bite at most."""
        due = self._due(self.next_id)
        count = int(np.searchsorted(due[:MAX_AT_ONCE], now_ns, side="right"))
        return self.next_id + count

    def prepare(self, stop: int) -> None:
        """Make the messages up to the id `stop` (exclusive) ready for `hand`."""
        first = self.next_id
        due_ns = self._due(first)[: stop - first]
        ids = np.arange(first, stop, dtype=np.int64)
        share, shares = self._part
        if shares > 1:
            own = partitions_of(self.file.stream, ids, self.partitions) % shares == share
            ids, due_ns = ids[own], due_ns[own]
        due_ms = (due_ns // NS_PER_MS + self._start_ms).tolist()
        rows = self.file.rows_of(ids)
        values = [b"%d;%d;%b" % each for each in zip(ids.tolist(), due_ms, rows, strict=True)]
        self._waiting = list(_by_partition(self.file.stream, ids, values, self.partitions))
        self._waiting_ids = (first, stop)
        self._waiting_due_ns = due_ns

    def hand(self, client: Client) -> bool:
        """Hand over what is prepared; False where the client's queue was full before the end."""
        while self._waiting:
            partition, values = self._waiting[0]
            taken = client.hand(self.topic, partition, values)
            if taken < len(values):
                self._waiting[0] = (partition, values[taken:])
                self.stalls += 1
                return False
            self._waiting.pop(0)
        return True

    def handed(self, now_ns: int) -> None:
        """Note that what was prepared is now handed over."""
        _, stop = self._waiting_ids
        if len(self._waiting_due_ns):
            self.lateness.add(now_ns - self._waiting_due_ns)
            self.seconds[now_ns // NS_PER_S] += len(self._waiting_due_ns)
            self.last_handed_ns = now_ns
        self.next_id = stop

    def handed_ids(self, handed: Mapping[int, int]) -> Ids:
        """The ids that a client took, by how many it took per partition: always the first ones."""
        ids = np.arange(self.total, dtype=np.int64)
        chosen = partitions_of(self.file.stream, ids, self.partitions)
        parts = [ids[chosen == partition][:count] for partition, count in handed.items()]
        return np.sort(np.concatenate(parts)) if parts else ids[:0]

    def per_second(self) -> list[int]:
        """Records handed over in each second after the start."""
        return [self.seconds[second] for second in range(max(self.seconds, default=-1) + 1)]

    def _due(self, first: int) -> Ids:
        """Due times from the id `first` on: a bite of them at least, or all that remain."""
        last = min(first + MAX_AT_ONCE, self.total)
        if last > self._chunk_first + len(self._chunk):
            self._chunk_first = first
            self._chunk = self.schedule.due_ns(first, min(first + _CHUNK, self.total))
        return self._chunk[first - self._chunk_first :]


def partitions_of(stream: int, ids: Ids, partitions: int) -> Ids:
    """The partition of each id: start and end of a production line stay together, in order."""
    return (ids // 2 if stream == PRODUCTION_TIMES else ids) % partitions


def _by_partition(
    stream: int, ids: Ids, values: list[bytes], partitions: int
) -> Iterator[tuple[int, list[bytes]]]:
    if partitions == 1:
        if values:
            yield 0, values
        return
    chosen = partitions_of(stream, ids, partitions)
    for partition in np.unique(chosen).tolist():
        yield partition, [values[index] for index in np.flatnonzero(chosen == partition).tolist()]
