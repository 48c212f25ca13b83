"""Running a matrix: cell by cell, each a run of its own, its state on disk after every one.

`results/matrix-<id>/matrix.json` says what was asked, which cells are done and by which run. A cell
that was interrupted or failed is run anew, with a new run, when the matrix is resumed; one that is
finished stays. The table is made of what the cells keep, in the order of the axes, so a resumed
matrix and an uninterrupted one give the same.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from espbench.config import Settings
from espbench.errors import EspbenchError, ExitCode, Interrupted, MachineError, UsageError, worst
from espbench.logs import LOGGER
from espbench.names import Query, find_query
from espbench.paths import locked, make_dir, write_atomically
from espbench.runs.matrix_plan import Cell, MatrixFile, cell_settings, plan
from espbench.runs.matrix_table import result_of, summarize
from espbench.runs.store import RunDir
from espbench.timestamps import new_run_id, utc_now

FORMAT = "espbench-matrix/1"
_FILE = "matrix.json"
_PREFIX = "matrix-"
# So many cells failing in a row mean that the machine is broken, not the cells.
_FAILURES_IN_A_ROW = 3
RunOne = Callable[[Settings, Query, str], tuple[RunDir, ExitCode]]


class Matrix:
    """A matrix in the store; `document` is what stands in matrix.json."""

    def __init__(
        self, root: Path, document: dict[str, Any], asked: MatrixFile, base: Settings
    ) -> None:
        self.root = root
        self.document = document
        self.asked = asked
        self.base = base

    @classmethod
    def create(cls, asked: MatrixFile, base: Settings) -> "Matrix":
        """A new matrix, all its cells pending."""
        matrix_id = f"{_PREFIX}{new_run_id()}"
        root = make_dir(base.results_dir.expanduser().resolve() / matrix_id)
        document = {
            "format": FORMAT,
            "matrix_id": matrix_id,
            "state": "pending",
            "started": utc_now().isoformat(),
            "ended": None,
            **_asked_document(asked, base),
            "cells": [cell.document() | _fresh() for cell in plan(asked, base)],
        }
        matrix = cls(root, document, asked, base)
        matrix.save()
        return matrix

    @classmethod
    def open(cls, name: str, asked: MatrixFile, base: Settings) -> "Matrix":
        """A matrix to be resumed: by id, the beginning of one, or `last`; it must ask the same."""
        root = find_matrix(base.results_dir, name)
        try:
            document = json.loads((root / _FILE).read_text(encoding="utf-8"))
            known = document["format"] == FORMAT and isinstance(document["cells"], list)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{root / _FILE} cannot be read: {error}", "start anew") from error
        if not known:
            raise UsageError(f"{root / _FILE} is not of the format {FORMAT}", "start anew")
        changed = _difference(document, _asked_document(asked, base))
        if changed:
            raise UsageError(
                f"{root.name} was asked for something else: {changed} has changed since",
                "resume with the same file, configuration and options, or start anew",
            )
        return cls(root, document, asked, base)

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells in the order in which they run."""
        cells: list[dict[str, Any]] = self.document["cells"]
        return cells

    def save(self) -> None:
        """Write matrix.json."""
        write_atomically(self.root / _FILE, json.dumps(self.document, indent=2) + "\n")

    def run(self, run_one: RunOne) -> ExitCode:
        """Run what is not finished yet; the code of all cells together."""
        with locked(self.root / "lock", f"{self.root.name} is being run already"):
            self._begin()
            try:
                self._run_cells(run_one)
            except BaseException as error:
                stopped = isinstance(error, KeyboardInterrupt | Interrupted)
                self._end("interrupted" if stopped else "failed")
                raise
            failed = any(cell["state"] != "finished" for cell in self.cells)
            self._end("failed" if failed else "finished")
        return self.code()

    def code(self) -> ExitCode:
        """Incorrect results beat cells that failed; those beat the other verdicts."""
        code = worst([ExitCode(cell["code"]) for cell in self.cells if cell["code"] is not None])
        if code is not ExitCode.INCORRECT and any(cell["error"] for cell in self.cells):
            return ExitCode.SERVICE
        return code

    def _begin(self) -> None:
        for cell in self.cells:
            if cell["state"] == "finished" and not self._is_there(cell):
                LOGGER.warning("the run %s is gone; it is made again", cell["runs"][-1])
                cell["state"] = "pending"
        self.document |= {"state": "running", "ended": None}
        self.save()

    def _is_there(self, cell: dict[str, Any]) -> bool:
        try:
            run = RunDir.open(self.root.parent / cell["runs"][-1])
        except UsageError:
            return False
        return bool(run.document.get("state") == "finished")

    def _run_cells(self, run_one: RunOne) -> None:
        failures = 0
        for number, entry in enumerate(self.cells, 1):
            if entry["state"] == "finished":
                continue
            cell = Cell(**{name: entry[name] for name in Cell.__slots__})
            LOGGER.info("cell %d of %d: %s", number, len(self.cells), cell.text())
            failures = 0 if self._run_cell(entry, cell, run_one) else failures + 1
            if failures == _FAILURES_IN_A_ROW:
                raise MachineError(
                    f"{failures} cells failed one after another, the last with: {entry['error']}",
                    f"mend it, then resume with --resume {self.root.name}",
                )

    def _run_cell(self, entry: dict[str, Any], cell: Cell, run_one: RunOne) -> bool:
        run_id = new_run_id()
        entry["runs"].append(run_id)
        entry |= {"state": "running", "result": None, "code": None, "error": None}
        self.save()
        settings = cell_settings(self.asked, self.base, cell)
        try:
            run_dir, code = run_one(settings, find_query(cell.query), run_id)
        except EspbenchError as error:
            LOGGER.warning("%s failed: %s", cell.text(), error.line())
            entry |= {"state": "failed", "error": error.line()}
            self.save()
            return False
        except BaseException:
            entry["state"] = "interrupted"
            raise
        (verdict,) = run_dir.document["queries"]
        entry |= {"state": "finished", "result": result_of(verdict), "code": int(code)}
        self.save()
        return True

    def _end(self, state: str) -> None:
        self.document |= {"state": state, "ended": utc_now().isoformat()}
        self.document["table"] = summarize(self.cells)
        self.save()


def _fresh() -> dict[str, Any]:
    return {"state": "pending", "runs": [], "result": None, "code": None, "error": None}


def find_matrix(results_dir: Path, name: str) -> Path:
    """The directory of a matrix by its id (with or without `matrix-`), its beginning, or `last`."""
    root = results_dir.expanduser().resolve()
    known = sorted(path.parent.name for path in root.glob(f"{_PREFIX}*/{_FILE}"))
    if not known:
        raise UsageError(f"there is no matrix in {root}", "start one with `espbench run --matrix`")
    if name == "last":
        return root / known[-1]
    wanted = name if name.startswith(_PREFIX) else f"{_PREFIX}{name}"
    found = [each for each in known if each.startswith(wanted)]
    if len(found) != 1:
        problem = "no matrix" if not found else f"{len(found)} matrices"
        raise UsageError(f"{problem} in {root} called {name}", f"there are: {', '.join(known)}")
    return root / found[0]


def runs_of(results_dir: Path, name: str) -> list[str]:
    """The runs that count of a matrix's finished cells, in the order in which they ran."""
    root = find_matrix(results_dir, name)
    try:
        document = json.loads((root / _FILE).read_text(encoding="utf-8"))
        finished = [cell for cell in document["cells"] if cell["state"] == "finished"]
        return [str(cell["runs"][-1]) for cell in finished]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise UsageError(f"{root / _FILE} cannot be read: {error}", "name its runs") from error


def is_matrix(name: str) -> bool:
    """Whether a name is meant for a matrix and not for a run."""
    return name.startswith(_PREFIX)


def _asked_document(asked: MatrixFile, base: Settings) -> dict[str, Any]:
    return {"matrix": asked.model_dump(mode="json"), "config": base.public()}


def _difference(stored: Any, asked: Any, above: str = "") -> str | None:
    """The first key of `asked` whose value is another in `stored`."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        keys = asked if not above else {**asked, **stored}
        for key in keys:
            path = f"{above}.{key}" if above else str(key)
            if (key in stored) != (key in asked):
                return path
            inner = _difference(stored[key], asked[key], path)
            if inner:
                return inner
        return None
    return None if stored == asked else above
