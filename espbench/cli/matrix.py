"""`espbench run --matrix` and `--full`: many runs, one table."""

import shutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espbench import logs
from espbench.cli import context
from espbench.config import Settings, load_settings
from espbench.errors import ConfigError, Interrupted, UsageError
from espbench.logs import LOGGER

if TYPE_CHECKING:
    from espbench.runs.matrix import Matrix
    from espbench.runs.matrix_plan import MatrixFile
    from espbench.runs.plan import Wishes


def run_matrix(
    file: Path | None,
    full: bool,
    resume: str | None,
    config: Path | None,
    options: dict[str, Any],
    wishes: "Wishes",
    *,
    json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run the matrix of `file`, or the one of 2021; options replace axes and settings."""
    if (file is None) != full:
        raise UsageError(
            "a matrix is either that of a file or that of 2021", "give --matrix FILE or --full"
        )
    from espbench.runs.matrix import Matrix
    from espbench.runs.matrix_plan import FULL, flat_settings, read_matrix, replace_axes
    from espbench.runs.run import run_benchmark

    # Without the matrix first: what fails only afterwards is the matrix file's own fault.
    context.begin(config, quiet=quiet, verbose=verbose, options=options)
    asked = replace_axes(read_matrix(file) if file else FULL, options)
    given = {key: value for key, value in options.items() if value is not None}
    try:
        base = load_settings(config, flat_settings(asked) | given)
    except ConfigError as error:
        raise ConfigError(f"settings in {file or '--full'}: {error.cause}", error.remedy) from error
    _check_cells(asked, base)
    matrix = Matrix.open(resume, asked, base) if resume else Matrix.create(asked, base)
    _announce(matrix)
    try:
        code = matrix.run(
            lambda settings, query, run_id: run_benchmark(
                settings, (query,), run_id, quiet=quiet, wishes=wishes
            )
        )
    except (KeyboardInterrupt, Interrupted) as error:
        raise Interrupted(
            f"{matrix.root.name} is interrupted; go on with the same command and "
            f"--resume {matrix.root.name}"
        ) from error
    _tell(matrix, json=json)
    context.finish(code)


def _check_cells(asked: "MatrixFile", base: Settings) -> None:
    """Refuse the matrix where one of its cells would be refused as a run, hours later."""
    from espbench.cli.precheck import check_run
    from espbench.names import find_query
    from espbench.runs.matrix_plan import cell_settings, plan

    for cell in plan(asked, base):
        if cell.repetition == 1:
            check_run(cell_settings(asked, base, cell), (find_query(cell.query),))


def _announce(matrix: "Matrix") -> None:
    from espbench.names import find_query
    from espbench.runs.estimate import estimate_all
    from espbench.runs.listing import size_text

    left = [cell for cell in matrix.cells if cell["state"] != "finished"]
    seconds, size = estimate_all(
        (matrix.base, find_query(cell["query"]), cell["rate"]) for cell in left
    )
    LOGGER.info(
        "%s: %d of %d cells to run; about %s and %s; in %s",
        *(matrix.root.name, len(left), len(matrix.cells)),
        *(timedelta(seconds=round(seconds)), size_text(size), matrix.root),
    )
    free = shutil.disk_usage(matrix.root).free
    if size > free:
        LOGGER.warning(
            "only %s are free there; drop captures with keep_captures: false", size_text(free)
        )


def _tell(matrix: "Matrix", *, json: bool) -> None:
    from espbench.runs.matrix_table import print_matrix, warnings

    rows = matrix.document["table"]
    said = warnings(rows)
    if json:
        names = ("matrix_id", "state", "started", "ended", "cells", "table")
        own = {name: matrix.document[name] for name in names}
        context.print_json(own | {"results": str(matrix.root), "warnings": said})
        return
    print_matrix(logs.stdout, rows)
    for line in said:
        sys.stdout.write(f"{line}\n")
    for cell in matrix.cells:
        if cell["error"]:
            sys.stdout.write(f"failed: {cell['runs'][-1]}: {cell['error']}\n")
    sys.stdout.write(f"results: {matrix.root}\n")
