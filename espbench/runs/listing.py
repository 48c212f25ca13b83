"""The run store at a glance: one entry per run, and the files of one run."""

import stat
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError, ExitCode
from espbench.runs.run import exit_code
from espbench.runs.store import RunDir, run_places

WORDS = {
    ExitCode.DONE: "correct",
    ExitCode.INCORRECT: "incorrect",
    ExitCode.UNKNOWN: "unknown",
    ExitCode.GATE_MISSED: "gate missed",
}


def entries(results_dir: Path) -> list[dict[str, Any]]:
    """What `espbench list` shows, the oldest run first; one that cannot be read says so."""
    return [entry(path) for path in run_places(results_dir)]


def entry(root: Path) -> dict[str, Any]:
    """One run: id, state, when, queries, rate, verdict, p90s, disk use."""
    size = sum(file["bytes"] for file in files(root))
    try:
        known = _known(RunDir.open(root).document)
    except EspbenchError as error:
        return _unreadable(root, error.cause, size)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return _unreadable(root, f"run.json lacks or garbles {error}", size)
    return {"run": root.name, **known, "bytes": size}


def _known(document: dict[str, Any]) -> dict[str, Any]:
    verdicts = document["queries"]
    config = document["config"]
    done = [verdict["query"] for verdict in verdicts]
    return {
        "state": str(document["state"]),
        "started": document["started"],
        "ended": document["ended"],
        "queries": done,
        "asked_queries": str(config["queries"]),
        "rate": float(config["load"]["rate"]),
        "duration": float(config["load"]["duration"]),
        "verdict": WORDS[exit_code(verdicts)] if verdicts else None,
        "p90_ms": {
            one["query"]: (one["latency_ms_after_warmup"] or {}).get("p90") for one in verdicts
        },
        "error": document.get("error"),
    }


def _unreadable(root: Path, reason: str, size: int) -> dict[str, Any]:
    return {"run": root.name, "state": "unreadable", "error": reason, "bytes": size}


def files(root: Path) -> list[dict[str, Any]]:
    """Every file below a run's directory with its size, by name."""
    return [
        {"file": str(path.relative_to(root)), "bytes": size}
        for path in sorted(root.rglob("*"))
        if (size := _size(path)) is not None
    ]


def _size(path: Path) -> int | None:
    try:
        found = path.lstat()
    except OSError:
        # A run that goes on may take a file away while we look.
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def size_text(size: float) -> str:
    """Bytes as a person reads them."""
    for unit in ("B", "kB", "MB"):
        if size < 1_000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:.1f} GB"
