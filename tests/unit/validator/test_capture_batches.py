"""Answers of the client library, in every order it may give them."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from validator.capture.topic import _Progress, _wanted

EOF, RESET, OUT_OF_RANGE = -191, -140, 1


class KafkaError:
    _PARTITION_EOF = EOF
    _AUTO_OFFSET_RESET = RESET
    OFFSET_OUT_OF_RANGE = OUT_OF_RANGE


LIBRARY = SimpleNamespace(KafkaError=KafkaError, KafkaException=RuntimeError)


@dataclass(frozen=True)
class Message:
    at: int
    code: int | None = None
    part: int = 0

    def error(self) -> Any:
        if self.code is None:
            return None
        return SimpleNamespace(code=lambda: self.code, retriable=lambda: False)

    def partition(self) -> int:
        return self.part

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return 2, 1000 + self.at

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return b"%d" % self.at


def progress(end: int) -> _Progress:
    seen = _Progress({0: end})
    seen.following = {0: 0}
    return seen


RECORDS = [Message(0), Message(1), Message(2)]


@pytest.mark.parametrize("answer", [[*RECORDS, Message(3, EOF)], [Message(3, EOF), *RECORDS]])
def test_records_that_come_together_with_the_end_are_kept(answer: list[Message]) -> None:
    seen = progress(3)
    batch = _wanted(LIBRARY, answer, seen)
    assert batch is not None
    assert batch["offset"].to_pylist() == [0, 1, 2]
    assert (seen.ends, seen.skipped, seen.records) == ({}, False, 3)


def test_records_beyond_the_end_are_left_out() -> None:
    seen = progress(2)
    batch = _wanted(LIBRARY, [Message(0), Message(1), Message(2), Message(3)], seen)
    assert batch is not None
    assert batch["offset"].to_pylist() == [0, 1]
    assert seen.ends == {}


def test_an_end_before_ours_is_not_the_end() -> None:
    seen = progress(5)
    _wanted(LIBRARY, [Message(0), Message(1, EOF)], seen)
    assert seen.ends == {0: 5}


def test_offsets_of_transactions_end_a_partition_without_a_record() -> None:
    seen = progress(3)
    _wanted(LIBRARY, [Message(0), Message(3, EOF)], seen)
    assert (seen.ends, seen.skipped, seen.lost) == ({}, True, {})


def test_records_deleted_meanwhile_are_told() -> None:
    seen = progress(3)
    _wanted(LIBRARY, [Message(0), Message(1, OUT_OF_RANGE)], seen)
    assert seen.ends == {}
    assert "deleted" in seen.lost[0]
