"""The first cases of each kind, with their texts, which are read again from the files."""

from typing import TYPE_CHECKING, Any

import numpy as np

from validator.matching import DUPLICATE, EXTRA, WRONG, Matching
from validator.outcome import WITNESSES_PER_KIND, Witness
from validator.records import Ints, text
from validator.topics import Topic

if TYPE_CHECKING:
    from validator.recordwise import Case

Contents = dict[int, tuple[bytes | None, bytes | None]]


def show_records(case: "Case", found: Matching, moved: Ints) -> list[Witness]:
    """Witnesses of a query that answers record by record; `moved` are outputs out of order."""
    missing = np.flatnonzero(found.missing & ~case.expected.optional)
    by_output = {
        "wrong": _first(case, np.flatnonzero(found.kind == WRONG)),
        "extra": _first(case, np.flatnonzero(found.kind == EXTRA)),
        "duplicate": _first(case, np.flatnonzero(found.kind == DUPLICATE)),
        "out_of_order": _first(case, moved),
    }
    by_input = {
        "missing": missing[:WITNESSES_PER_KIND].tolist(),
        "borderline": np.flatnonzero(case.expected.optional)[:WITNESSES_PER_KIND].tolist(),
    }
    shown = _Shown(case, found, by_output, by_input)
    return [
        witness
        for kind in ("wrong", "missing", "extra", "duplicate", "out_of_order", "borderline")
        for witness in shown.of(kind)
    ]


def _first(case: "Case", rows: Ints) -> list[int]:
    """The first outputs, by their places."""
    places = case.outputs.topic.places
    order = np.lexsort((places.offset.at(rows), places.partition.at(rows)))
    first: list[int] = rows[order][:WITNESSES_PER_KIND].tolist()
    return first


class _Shown:
    """Texts of the inputs and outputs that are to be shown, and the witnesses made of them."""

    def __init__(
        self,
        case: "Case",
        found: Matching,
        by_output: dict[str, list[int]],
        by_input: dict[str, list[int]],
    ) -> None:
        self._case, self._found = case, found
        self._by_output, self._by_input = by_output, by_input
        outputs = {row for rows in by_output.values() for row in rows}
        expected = {row for rows in by_input.values() for row in rows}
        expected |= {int(found.expected[row]) for row in outputs} - {-1}
        outputs |= {int(found.answer[row]) for row in expected} - {-1}
        self._outputs = case.outputs.topic.read_again(outputs)
        self._inputs: list[Contents] = [
            stream.topic.read_again(
                int(case.expected.row[row])
                for row in expected
                if case.expected.source[row] == place
            )
            for place, stream in enumerate(case.streams)
        ]

    def of(self, kind: str) -> list[Witness]:
        """The witnesses of a kind."""
        shown = [self._output(kind, row) for row in self._by_output.get(kind, [])]
        return shown + [self._input(kind, row) for row in self._by_input.get(kind, [])]

    def _output(self, kind: str, row: int) -> Witness:
        answered = int(self._found.expected[row])
        known = answered >= 0
        return Witness(
            kind=kind,
            **place_of(self._case.outputs.topic, row),
            expected=self._expected(answered) if known else None,
            actual=text(self._outputs[row][1]),
            more={"input": self._place_of_input(answered)} if known else {},
        )

    def _input(self, kind: str, row: int) -> Witness:
        answer = int(self._found.answer[row])
        return Witness(
            kind=kind,
            **self._place_of_input(row),
            expected=self._expected(row),
            actual=text(self._outputs[answer][1]) if answer >= 0 else None,
        )

    def _expected(self, row: int) -> str | None:
        expected = self._case.expected
        _, value = self._inputs[int(expected.source[row])][int(expected.row[row])]
        return text(self._case.shown(value, row))

    def _place_of_input(self, row: int) -> dict[str, Any]:
        expected = self._case.expected
        topic = self._case.streams[int(expected.source[row])].topic
        return place_of(topic, int(expected.row[row]))


def place_of(topic: Topic, row: int) -> dict[str, Any]:
    """Topic, partition and offset of a record."""
    here = np.array([row])
    return {
        "topic": topic.name,
        "partition": int(topic.places.partition.at(here)[0]),
        "offset": int(topic.places.offset.at(here)[0]),
    }
