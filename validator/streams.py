"""The source streams as columns: what the oracles compute from.

A record is *well-formed* if it is UTF-8 and reads `<id>;<due_ms>;<line>` with the right number of
columns, and the columns that queries use are integers. Anything else is malformed: it is counted,
shown, and no query but identity answers it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from validator.ahead import ahead
from validator.batches import Batch
from validator.evidence import Evidence
from validator.fingerprints import Prints, nothing
from validator.packed import Packed, PackedColumns
from validator.records import Bools, Ints, RawBytes, Rows, is_utf8, take_apart
from validator.topics import Topic, TopicBuilder, TopicFile, read_batches

SENSOR_COLUMNS = 57
MF01, MF02, MF03, WORKPLACE = 3, 4, 5, 57
MEASURED = ("mf01", "mf02", "mf03")
PRODUCTION_COLUMNS = 4
SHOWN_MALFORMED = 5

Columns = Mapping[str, Any]
# Which records of a batch may have to be answered.
Keeps = Callable[[Columns], Bools]
# The fingerprints of what would answer these values.
Answering = Callable[[pa.Array], Prints]


@dataclass(frozen=True, slots=True)
class Stream:
    """All records of one source stream, as columns of equal length.

    Always there: `id`, `due_ms`, `has_due`, `well_formed`. A sensor stream adds `workplace`,
    `has_identity` (UTF-8 with id and workplace, whatever else is wrong), and of `mf01`, `mf02`,
    `mf03` those that were asked for; production times add `o_id`, `ol_number`, `pol_number`,
    `is_end`. Of the rows in `kept` the fingerprints of their answers are held, of none its value.
    """

    number: int
    topic: Topic
    columns: PackedColumns
    kept: Packed
    answers: Prints
    malformed_rows: Ints
    malformed_values: list[bytes | None]

    def __len__(self) -> int:
        return len(self.topic)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def at(self, name: str, rows: Rows) -> Any:
        """A column in some rows."""
        return self.columns.at(name, rows)

    @property
    def malformed(self) -> int:
        """How many records are malformed."""
        return int(len(self) - self.columns["well_formed"].sum())


def sensor_columns(values: pa.Array) -> Columns:
    """Take sensor records apart."""
    raw = RawBytes.of(values)
    fields = take_apart(raw, fields=2, columns=SENSOR_COLUMNS)
    number, has_id = fields.whole(0)
    due_ms, has_due = fields.integer(1)
    workplace, has_workplace = fields.column(WORKPLACE)
    named = has_id & has_workplace & is_utf8(raw)
    good = named & has_due
    measured = {}
    for name, place in (("mf01", MF01), ("mf02", MF02), ("mf03", MF03)):
        measured[name], is_integer = fields.column(place)
        good &= is_integer
    return {
        "id": number,
        "due_ms": due_ms,
        "has_due": has_id & has_due,
        "workplace": workplace,
        "has_identity": named,
        "well_formed": good,
        **measured,
    }


def production_columns(values: pa.Array) -> Columns:
    """Take production times apart."""
    raw = RawBytes.of(values)
    fields = take_apart(raw, fields=2, columns=PRODUCTION_COLUMNS)
    number, has_id = fields.whole(0)
    due_ms, has_due = fields.integer(1)
    good = has_id & has_due & is_utf8(raw)
    keys = {}
    for place, name in enumerate(("o_id", "ol_number", "pol_number", "is_end"), start=1):
        keys[name], is_integer = fields.column(place)
        good &= is_integer
    good &= (keys["is_end"] == 0) | (keys["is_end"] == 1)
    return {
        "id": number,
        "due_ms": due_ms,
        "has_due": has_id & has_due,
        "well_formed": good,
        **keys,
    }


def read_stream(
    number: int,
    file: TopicFile,
    keeps: Keeps,
    answering: Answering,
    measured: tuple[str, ...] = MEASURED,
) -> Stream:
    """Read a source stream; `keeps`, `answering` and `measured` say what will be needed of it."""
    take = production_columns if number == 3 else sensor_columns
    evidence = Evidence(file.shown)
    unused = frozenset(MEASURED) - frozenset(measured)

    def taken(batch: Batch) -> tuple[Columns, Bools, Prints]:
        columns = take(batch.value)
        wanted = keeps(columns)
        if not wanted.any():
            return columns, wanted, nothing()
        values = batch.value if wanted.all() else batch.value.filter(pa.array(wanted))
        return columns, wanted, answering(values)

    empty = take(pa.array([], type=pa.binary()))
    builder = _StreamBuilder(
        TopicBuilder(file, evidence),
        PackedColumns.like({name: empty[name] for name in empty if name not in unused}),
    )
    for batch, (columns, wanted, answers) in ahead(read_batches(file, evidence), taken):
        builder.add(batch, columns, wanted, answers)
    return builder.finish(number)


@dataclass(slots=True)
class _StreamBuilder:
    topic: TopicBuilder
    columns: PackedColumns
    kept: Packed = field(default_factory=Packed)
    answers: list[Prints] = field(default_factory=list)
    malformed: list[tuple[int, bytes | None]] = field(default_factory=list)
    count: int = 0

    def add(self, batch: Batch, columns: Columns, wanted: Bools, answers: Prints) -> None:
        self.topic.add(batch)
        self.columns.add(columns)
        self.kept.add(np.flatnonzero(wanted) + self.count)
        self.answers.append(answers)
        room = SHOWN_MALFORMED - len(self.malformed)
        if room and not columns["well_formed"].all():
            for row in np.flatnonzero(~columns["well_formed"])[:room]:
                self.malformed.append((self.count + int(row), batch.value[int(row)].as_py()))
        self.count += len(batch)

    def finish(self, number: int) -> Stream:
        topic, keep = self.topic.finish()
        kept, malformed = self.kept, self.malformed
        answers = np.concatenate([nothing(), *self.answers])
        self.answers.clear()
        if keep is not None:
            row_after = np.cumsum(keep) - 1
            rows = kept.all()
            answers = answers[keep[rows]]
            kept = Packed.of(row_after[rows[keep[rows]]])
            malformed = [(int(row_after[row]), value) for row, value in malformed if keep[row]]
        return Stream(
            number=number,
            topic=topic,
            columns=self.columns.only(keep),
            kept=kept,
            answers=answers,
            malformed_rows=np.array([row for row, _ in malformed], dtype=np.int64),
            malformed_values=[value for _, value in malformed],
        )


@dataclass(frozen=True, slots=True)
class SentReport:
    """What the sender's report says of one stream."""

    handed: int | None = None
    acknowledged: int | None = None
    failed: int | None = None
    stalls: int | None = None
    asked_rate: float | None = None


def check_ids(stream: Stream, report: SentReport | None) -> None:
    """Add a problem where ids do not run 0..n-1 and nothing explains it.

    A malformed record that tells an id which nobody else has stands for that id, any other one for
    some id that is not there; the sender's report explains as many as it failed to send. An id that
    occurs twice was delivered twice, which is no gap.
    """
    good, number = stream["well_formed"], stream["id"]
    # What a malformed record says of its id counts where it can be true.
    told = ~good & stream["has_due"] & (number <= number[good].max(initial=-1))
    well_formed = _distinct(number[good])
    ids = _distinct(np.concatenate([well_formed, number[told]])) if told.any() else well_formed
    nameless = stream.malformed - (len(ids) - len(well_formed))
    evidence = stream.topic.evidence
    if report is not None and report.acknowledged is not None:
        captured = len(ids) + nameless
        if captured < report.acknowledged:
            evidence.add(
                f"the sender's report tells of {report.acknowledged:,} acknowledged records, the "
                f"capture holds {captured:,}"
            )
    if not len(ids) or len(ids) == ids[-1] + 1:
        return
    absent = int(ids[-1]) + 1 - len(ids)
    explained = nameless
    if report is not None:
        explained += report.failed or 0
    if absent > explained:
        evidence.add(
            f"{absent - explained:,} of the ids 0 to {ids[-1]} are missing, the first is "
            f"{_first_absent(ids)}, and no sender's report explains it"
        )


def check_partitions(stream: Stream) -> None:
    """Note where records are not in the partition that the rule of the sender gives them.

    The queries are judged by the partitions as they are: no evidence is missing.
    """
    topic, rows = stream.topic, np.flatnonzero(stream["well_formed"])
    partitions = 1 + max(int(topic.partition.max(initial=0)), *topic.listed_partitions, 0)
    if partitions == 1:
        return
    number = stream["id"][rows] // 2 if stream.number == 3 else stream["id"][rows]
    astray = rows[topic.partition[rows] != number % partitions]
    if len(astray):
        topic.evidence.note(
            f"{len(astray):,} records are not in the partition of their id, the first is partition "
            f"{topic.partition[astray[0]]} offset {topic.offset[astray[0]]}"
        )


def _distinct(ids: Ints) -> Ints:
    """The ids, rising, each once; at once where they are so already."""
    return ids if (np.diff(ids) > 0).all() else np.unique(ids)


def _first_absent(ids: Ints) -> int:
    """The smallest number from 0 that is not in the rising `ids`."""
    return int(np.argmax(ids != np.arange(len(ids)))) if ids[0] == 0 else 0
