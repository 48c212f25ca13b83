"""Which run made which topics: the only topics that may be deleted.

One file per run, `topics/<run>.json` in the state directory, format "espbench-topics/1":
`{"format", "run", "cluster_id", "topics": [{"name", "topic_id", "partitions"}]}`. `topic_id` is
null from just before the creation until the cluster has answered.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from espbench.errors import InputError, MachineError, UsageError
from espbench.paths import make_dir, write_atomically

FORMAT = "espbench-topics/1"
_RUN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,149}")


@dataclass(frozen=True, slots=True)
class MadeTopic:
    """One topic that a run made; `topic_id` is None where the creation was cut short."""

    name: str
    topic_id: str | None
    partitions: int


@dataclass(frozen=True, slots=True)
class MadeTopics:
    """All topics that one run made, on one cluster."""

    run: str
    cluster_id: str
    topics: tuple[MadeTopic, ...]


class TopicRegistry:
    """The records in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, run: str) -> MadeTopics | None:
        """What a run made, or None."""
        path = self._path(run)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _unusable(path, str(error)) from error
        return _parsed(path, content)

    def runs(self) -> list[str]:
        """Every run that has a record, in order of name."""
        return sorted(path.stem for path in self._directory.glob("*.json"))

    def write(self, made: MadeTopics) -> None:
        """Keep a record, replacing an older one of the run."""
        make_dir(self._directory)
        path = self._path(made.run)
        try:
            write_atomically(path, json.dumps({"format": FORMAT, **asdict(made)}, indent=2) + "\n")
        except OSError as error:
            raise MachineError(
                f"cannot write the record of topics {path}: {error.strerror}",
                "check permissions and disk of the state directory",
            ) from error

    def forget(self, run: str) -> None:
        """Drop a run's record."""
        self._path(run).unlink(missing_ok=True)

    def _path(self, run: str) -> Path:
        return self._directory / f"{check_run(run)}.json"


def check_run(run: str) -> str:
    """The run's name, if it can be part of topic and file names; else `UsageError`."""
    if not _RUN.fullmatch(run):
        raise UsageError(
            f"--run {run!r} cannot be part of a topic's name",
            "use letters, digits, '.', '_' and '-', and begin with a letter or digit",
        )
    return run


def _parsed(path: Path, content: Any) -> MadeTopics:
    try:
        if content["format"] != FORMAT:
            raise _unusable(path, f"its format is {content['format']!r}")
        topics = tuple(
            MadeTopic(str(each["name"]), each["topic_id"], int(each["partitions"]))
            for each in content["topics"]
        )
        return MadeTopics(str(content["run"]), str(content["cluster_id"]), topics)
    except (KeyError, TypeError, ValueError) as error:
        raise _unusable(path, f"{type(error).__name__}: {error}") from error


def _unusable(path: Path, why: str) -> InputError:
    return InputError(
        f"the record of topics {path} cannot be read: {why}",
        "restore it, or remove the file and delete its topics by hand",
    )
