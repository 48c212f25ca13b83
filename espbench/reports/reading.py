"""Reading a run's files: what is missing or damaged becomes a sentence, never a failure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(slots=True)
class Files:
    """The files of one run; `problems` collects what could not be read, and why."""

    root: Path
    problems: list[str] = field(default_factory=list)

    def document(self, name: str) -> dict[str, Any] | None:
        """A JSON object; None where there is none."""
        path = self.root / name
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            self._note(name, error)
            return None
        if not isinstance(found, dict):
            self._note(name, "no JSON object")
            return None
        return found

    def lines(self, name: str) -> Iterator[dict[str, Any]]:
        """The objects of a JSON Lines file; a torn line is left out and noted."""
        path = self.root / name
        if not path.is_file():
            return
        broken = 0
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    found = json.loads(line)
                except (ValueError, RecursionError):
                    broken += 1
                    continue
                if isinstance(found, dict):
                    yield found
        if broken:
            self._note(name, f"{broken} lines are no JSON")

    def table(
        self, name: str, columns: tuple[str, ...], optional: tuple[str, ...] = ()
    ) -> pa.Table | None:
        """Columns of a Parquet file; None where it is missing, damaged or of another shape.

        Columns that are `optional` are there if the file has them.
        """
        path = self.root / name
        if not path.is_file():
            return None
        try:
            there = [each for each in optional if each in pq.read_schema(path).names]
            wanted = [*columns, *there]
            return pq.read_table(path, columns=wanted).select(wanted)
        except (OSError, pa.ArrowException, KeyError) as error:
            self._note(name, error)
            return None

    def _note(self, name: str, reason: object) -> None:
        text = f"{name} cannot be read: {' '.join(str(reason).split())[:200]}"
        if text not in self.problems:
            self.problems.append(text)


def at(document: Any, *path: str | int) -> Any:
    """What stands at a path inside nested data; None where the path leads nowhere."""
    for key in path:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def gibibytes(value: Any) -> str:
    """Memory as people know it."""
    found = number(value)
    return "unknown memory" if found is None else f"{found / 2**30:.1f} GiB"


def number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None
