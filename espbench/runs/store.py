"""The run store: one directory per run, `results/<run id>/`."""

import csv
import json
import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from espbench.errors import UsageError
from espbench.names import Query, find_query, run_of, sink_topic
from espbench.paths import make_dir, write_atomically

FORMAT = "espbench-run/1"
_RUN_ID = re.compile(r"\d{8}T\d{6}-[0-9a-f]{4}")
# The columns of the 2021 result files, in their order and with their names; ours follow.
COLUMNS_2021 = (
    "sendingInterval",
    "sendingIntervalTimeUnit",
    "Query",
    "Topic",
    "Correct",
    "RT-Fulfilled",
    "RT-90%ile in ms",
    "RT-Min in ms",
    "RT-Max in ms",
    "RT-Mean in ms",
    "Input",
    "Expected Output",
    "Actual Output",
    "False Output",
    "Correctness %",
    "ValidatorRuntime in s",
)
OWN_COLUMNS = (
    "correctness",
    "p50_ms",
    "p99_ms",
    "p90_after_warmup_ms",
    "end_to_end_p90_ms",
    "asked_rate",
    "achieved_rate",
    "load_valid",
    "sustainability",
)

# What a finished run never changes; reports may be made anew, logs are nobody's result.
_RESULTS = ("run.json", "config.yml", "summary.csv", "verdict-*.json", "*.parquet", "capture/**/*")


class RunDir:
    """The directory of one run. `document` is what stands in run.json.

    A run that is written as finished is sealed: nothing saves it again unless it says so, and its
    results become read-only. One that failed or was interrupted stays open, to be resumed.
    """

    def __init__(self, root: Path, document: dict[str, Any], *, sealed: bool = False) -> None:
        self.root = root
        self.document = document
        self.sealed = sealed

    @classmethod
    def create(cls, results_dir: Path, run_id: str, document: dict[str, Any]) -> "RunDir":
        """Make the directory of a new run; an existing one is never reused."""
        root = results_dir.expanduser().resolve() / run_id
        if root.exists():
            raise UsageError(f"there is a run {run_id} already: {root}", "choose another run id")
        make_dir(root / "logs")
        run = cls(root, {"format": FORMAT, "run_id": run_id, **document})
        run.save()
        return run

    @classmethod
    def open(cls, root: Path) -> "RunDir":
        """Read a run that was written before."""
        path = root / "run.json"
        try:
            document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
            known = document["format"] == FORMAT
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{root} is no run: {error}", "see `espbench list`") from error
        if not known:
            raise UsageError(
                f"{path} has the format {document['format']!r}, not {FORMAT}",
                "read it with the version of espbench that wrote it",
            )
        return cls(root, document, sealed=document.get("state") == "finished")

    def save(self, *, amend: bool = False) -> None:
        """Write run.json; of a finished run only to `amend` it."""
        if self.sealed and not amend:
            raise UsageError(
                f"the run {self.document['run_id']} is finished, and so never changed",
                "make another one with `espbench run`",
            )
        write_atomically(self.root / "run.json", json.dumps(self.document, indent=2) + "\n")
        if self.document.get("state") == "finished":
            self._seal()

    def _seal(self) -> None:
        self.sealed = True
        for pattern in _RESULTS:
            for path in self.root.glob(pattern):
                if path.is_file() and not path.is_symlink():
                    path.chmod(0o444)

    def note_step(self, step: str, query: Query | None, started: datetime, seconds: float) -> None:
        """Record how long a step took."""
        entry = {
            "step": step,
            "query": query.name if query else None,
            "started": started.isoformat(),
            "seconds": round(seconds, 3),
        }
        self.document["steps"].append(entry)
        self.save()

    def log(self, name: str) -> Path:
        """The log file of a step."""
        return self.root / "logs" / f"{name}.log"

    def capture(self, query: Query) -> Path:
        """The capture directory of a query."""
        return self.root / "capture" / query.name

    def write_summary(self) -> None:
        """Write summary.csv: a row per query that has a verdict."""
        draft = self.root / ".summary.csv"
        with draft.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*COLUMNS_2021, *OWN_COLUMNS])
            writer.writerows(self._row(verdict) for verdict in self.document["queries"])
        draft.replace(self.root / "summary.csv")

    def _row(self, verdict: dict[str, Any]) -> list[Any]:
        query = find_query(verdict["query"])
        run = run_of(self.document["run_id"], query)
        prefix = self.document["config"]["kafka"]["prefix"]
        return _row(verdict, query, sink_topic(prefix, run, query) if query.sink else "")


def _no_number(text: str) -> float:
    raise ValueError(f"it holds {text}, which is no number")


def check_whole(run: RunDir) -> RunDir:
    """The run, if its document can be reported and compared; else `UsageError`."""
    document = run.document
    verdicts, config = document.get("queries"), document.get("config")
    wanted = {"query", "correctness", "counts", "load", "sustainability", "slo"}
    whole = (
        isinstance(config, dict)
        and isinstance(verdicts, list)
        and all(isinstance(each, dict) and wanted <= each.keys() for each in verdicts)
    )
    if not whole:
        raise UsageError(
            f"{run.root / 'run.json'} is damaged: its config or its queries are not whole",
            "see what is there with `espbench show --json`",
        )
    return run


def all_runs(results_dir: Path) -> list[RunDir]:
    """Every readable run of a store, the oldest first."""
    found = []
    for path in run_places(results_dir):
        with suppress(UsageError):
            found.append(RunDir.open(path))
    return found


def run_places(results_dir: Path) -> list[Path]:
    """The directories that are runs, or were meant to be, the oldest first."""
    root = results_dir.expanduser().resolve()
    if not root.is_dir():
        return []
    return sorted(
        path
        for path in root.iterdir()
        if path.is_dir() and ((path / "run.json").exists() or _RUN_ID.fullmatch(path.name))
    )


def find_run(results_dir: Path, name: str) -> RunDir:
    """A run by its id, the beginning of one, `last`, or the path of its directory."""
    if (Path(name) / "run.json").is_file():
        return RunDir.open(Path(name).resolve())
    root = results_dir.expanduser().resolve()
    known = sorted(path.parent.name for path in root.glob("*/run.json"))
    if not known:
        raise UsageError(f"there are no runs in {root}", "make one with `espbench run`")
    if not name:
        raise UsageError("the run's name is empty", "see `espbench list`")
    if name == "last":
        return RunDir.open(root / known[-1])
    found = [name] if name in known else [each for each in known if each.startswith(name)]
    if len(found) != 1:
        problem = "no run" if not found else f"{len(found)} runs"
        raise UsageError(f"{problem} in {root} called {name}", "see `espbench list`")
    return RunDir.open(root / found[0])


def _row(verdict: dict[str, Any], query: Query, topic: str) -> list[Any]:
    counts, load = verdict["counts"], verdict["load"]
    latency = verdict["latency_ms"] or {}
    false = counts["extra"] + counts["wrong"]
    expected = counts["expected"]
    asked = load["asked_rate"]
    return [
        # 2021 gave the pause between two records; the rate stands among our own columns.
        *((1_000_000 / asked, "MICROSECONDS") if asked else ("", "")),
        query.name,
        topic,
        str(verdict["correctness"] == "correct").lower(),
        "" if verdict["slo"]["met"] is None else str(verdict["slo"]["met"]).lower(),
        *(_number(latency.get(key)) for key in ("p90", "min", "max", "mean")),
        counts["input"],
        expected,
        counts["actual"],
        false,
        round(100 * counts["matched"] / expected, 4) if expected else "",
        verdict["validator_s"],
        verdict["correctness"],
        _number(latency.get("p50")),
        _number(latency.get("p99")),
        _number((verdict["latency_ms_after_warmup"] or {}).get("p90")),
        _number((verdict["end_to_end_ms"] or {}).get("p90")),
        _number(asked),
        _number(load["achieved_rate"]),
        "" if load["valid"] is None else str(load["valid"]).lower(),
        verdict["sustainability"]["verdict"],
    ]


def _number(value: float | None) -> float | str:
    # What lies beyond is interpolation's dust.
    return "" if value is None else round(value, 3)
