"""From what the user named to the sides of a comparison."""

from collections.abc import Sequence
from pathlib import Path

from espbench.compare.baselines import baselines
from espbench.compare.sides import Side, grouped, mixed, name_of
from espbench.errors import UsageError
from espbench.runs.matrix import find_matrix, is_matrix, runs_of
from espbench.runs.store import RunDir, check_whole, find_run


def find_runs(results_dir: Path, text: str) -> list[RunDir]:
    """Runs by names of baselines or matrices, ids, beginnings, paths, `last`; several by commas."""
    known = baselines(results_dir)
    found: list[RunDir] = []
    for name in (part.strip() for part in text.split(",") if part.strip()):
        ids = known.get(name) or (runs_of(results_dir, name) if is_matrix(name) else [name])
        found += [check_whole(find_run(results_dir, each)) for each in ids]
    if not found:
        raise UsageError("no run is named", "see `espbench list`")
    unique = {run.root: run for run in found}
    return list(unique.values())


def choose_sides(
    results_dir: Path, arguments: Sequence[str], base: str | None, new: str | None
) -> tuple[Side, list[Side]]:
    """The base and what stands beside it.

    By `--base` and `--new`; without `--base` the first argument is the base. The other runs are
    grouped: those of equal conditions are repetitions of one another.
    """
    rest = list(arguments)
    if base is None:
        if not rest:
            raise UsageError("no run is named", "as in: espbench compare BASE NEW")
        base = rest.pop(0)
    named = [*rest, *([new] if new else [])]
    if not named:
        raise UsageError("there is nothing to compare with the base", "name a second run")
    base_runs = find_runs(results_dir, base)
    if unequal := mixed(base_runs):
        raise UsageError(
            f"the base runs are no repetitions of one another ({'; '.join(unequal[:3])})",
            "name runs of equal conditions",
        )
    others = {run.root: run for each in named for run in find_runs(results_dir, each)}
    sides = grouped(list(others.values()))
    if len(sides) == len(named) == 1:
        sides = [Side(_label(results_dir, named[0], sides[0].runs), sides[0].runs)]
    return Side(_label(results_dir, base, base_runs), tuple(base_runs)), sides


def _label(results_dir: Path, name: str, runs: Sequence[RunDir]) -> str:
    """What a side is called: as its baseline or matrix, else by its runs."""
    if name in baselines(results_dir):
        return name
    return find_matrix(results_dir, name).name if is_matrix(name) else name_of(runs)
