"""What an oracle found: counts, witnesses, and when each expected answer was owed and given."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from validator.packed import Packed
from validator.records import Bools, Ints

KINDS = ("wrong", "missing", "extra", "duplicate", "out_of_order", "surplus", "borderline")
WITNESSES_PER_KIND = 5
UNKNOWN_MS = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Witness:
    """One case of a kind, with the record that shows it.

    A missing output is shown by the input that calls for it, everything else by the output itself.
    """

    kind: str
    topic: str
    partition: int | None
    offset: int | None
    expected: str | None
    actual: str | None
    more: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As the verdict shows it."""
        return {
            "kind": self.kind,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "expected": self.expected,
            "actual": self.actual,
            **self.more,
        }


Column = npt.NDArray[Any] | Packed


def _packed(column: Column) -> Packed:
    return column if isinstance(column, Packed) else Packed.of(column)


class Answers:
    """Every expected answer that is judged: when it was owed, when given, when its input was due.

    `stream`, `partition`, `offset`, `id` name its last input. Times are epoch milliseconds, those
    that a database gave with decimals, or `UNKNOWN_MS`. `given`: an answer of this identity came,
    right or wrong; `matched`: a right one. All but the last two are held packed: each look at one
    makes the array anew.
    """

    def __init__(
        self,
        *,
        stream: Column,
        partition: Column,
        offset: Column,
        id: Column,
        owed_ms: Column,
        given_ms: Column,
        due_ms: Column,
        given: Bools,
        matched: Bools,
    ) -> None:
        self._stream = _packed(stream)
        self._partition = _packed(partition)
        self._offset = _packed(offset)
        self._id = _packed(id)
        self._owed_ms = _packed(owed_ms)
        self._given_ms = _packed(given_ms)
        self._due_ms = _packed(due_ms)
        self.given, self.matched = given, matched

    def __len__(self) -> int:
        return len(self._owed_ms)

    @property
    def stream(self) -> Ints:
        """The number of its stream."""
        return self._stream.all()

    @property
    def partition(self) -> Ints:
        """The partition of its input."""
        return self._partition.all()

    @property
    def offset(self) -> Ints:
        """The offset of its input."""
        return self._offset.all()

    @property
    def id(self) -> Ints:
        """The id of its input."""
        return self._id.all()

    @property
    def owed_ms(self) -> Ints:
        """When its input had come."""
        return self._owed_ms.all()

    @property
    def given_ms(self) -> npt.NDArray[Any]:
        """When it was given."""
        return self._given_ms.all()

    @property
    def due_ms(self) -> Ints:
        """When its input was due."""
        return self._due_ms.all()

    @classmethod
    def none(cls) -> "Answers":
        """No answers at all."""
        ints, bools = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
        return cls(
            **dict.fromkeys(
                ("stream", "partition", "offset", "id", "owed_ms", "given_ms", "due_ms"), ints
            ),
            given=bools,
            matched=bools,
        )


@dataclass(slots=True)
class Outcome:
    """What comparing expected and actual answers gave.

    `against` counts, by kind, what speaks against the system under test for certain; `undecided`
    what would, were it not for evidence that is missing. `reasons` say why.
    """

    counts: dict[str, int] = field(default_factory=dict)
    against: dict[str, int] = field(default_factory=dict)
    undecided: dict[str, int] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    witnesses: list[Witness] = field(default_factory=list)
    answers: Answers = field(default_factory=Answers.none)
    # When what each answer needs had come, where that is not when it is owed: an answer stamped
    # before is the sign of a wrong clock.
    needs_ms: Ints | None = None
    commit_ms: npt.NDArray[Any] | None = None
    extras: dict[str, Any] = field(default_factory=dict)

    def hold_against(self, kind: str, count: int) -> None:
        """Count what is certainly wrong."""
        if count:
            self.against[kind] = self.against.get(kind, 0) + count

    def leave_open(self, kind: str, count: int) -> None:
        """Count what missing evidence leaves undecided."""
        if count:
            self.undecided[kind] = self.undecided.get(kind, 0) + count
