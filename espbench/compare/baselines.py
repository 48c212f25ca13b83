"""Baselines: sets of runs by name, in `results/baselines.json`."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from espbench.errors import UsageError
from espbench.paths import make_dir, write_atomically
from espbench.runs.store import RunDir

FORMAT = "espbench-baselines/1"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")


def baselines(results_dir: Path) -> dict[str, list[str]]:
    """Names and the ids of their runs."""
    path = _path(results_dir)
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise UsageError(
                f"{path} has the format {document['format']!r}, not {FORMAT}",
                "read it with the version of espbench that wrote it",
            )
        return {
            str(name): [str(run) for run in entry["runs"]]
            for name, entry in document["baselines"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is damaged: {error}", "correct or delete it") from error


def save_baseline(results_dir: Path, name: str, runs: list[RunDir]) -> Path:
    """Give runs a name; an older baseline of this name is replaced."""
    if not _NAME.fullmatch(name) or name == "last":
        raise UsageError(
            f"{name!r} is no name for a baseline",
            "begin with a letter, then letters, digits, dots, dashes; `last` is taken",
        )
    root = results_dir.expanduser().resolve()
    foreign = [str(run.root) for run in runs if run.root.parent != root]
    if foreign:
        raise UsageError(f"{foreign[0]} is not in {root}", "a baseline names runs of its own store")
    entries: dict[str, Any] = {
        each: {"runs": ids} for each, ids in baselines(results_dir).items() if each != name
    }
    saved = datetime.now(UTC).isoformat(timespec="seconds")
    entries[name] = {"runs": [run.root.name for run in runs], "saved": saved}
    make_dir(root)
    document = {"format": FORMAT, "baselines": entries}
    write_atomically(_path(results_dir), json.dumps(document, indent=2) + "\n")
    return _path(results_dir)


def _path(results_dir: Path) -> Path:
    return results_dir.expanduser().resolve() / "baselines.json"
