"""A query's checkpoint: whose it is, and that one process at a time uses it."""

import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from espbench.errors import UsageError
from espbench.names import Query
from espbench.paths import make_dir

MARKER = "espbench.json"
FORMAT = "espbench-checkpoint/1"
# A driver whose parent was killed needs a moment to notice.
PATIENCE_S = 20.0


@contextmanager
def claimed(
    directory: Path,
    query: Query,
    topics: Mapping[str, str],
    keeps: str,
    *,
    patience_s: float = PATIENCE_S,
) -> Iterator[int]:
    """Hold the checkpoint; yields the lock's file descriptor, for the JVM to share.

    Raises `UsageError` where another process uses it, or where it was made by another query, for
    other topics, or in a mode that `keeps` other things: Spark would answer wrongly or not at all.
    """
    make_dir(directory)
    with (directory / MARKER).open("a+", encoding="utf-8") as file:
        _lock(file.fileno(), directory, patience_s)
        file.seek(0)
        wanted = {"format": FORMAT, "query": query.name, "topics": dict(topics), "keeps": keeps}
        content = file.read()
        if content and _read(content) != wanted:
            raise UsageError(
                f"the checkpoint {directory} belongs to another query, topics or mode",
                "choose another --checkpoint or --run, or the --engine that it was made with",
            )
        if not content:
            json.dump(wanted, file)
            file.flush()
        yield file.fileno()


def _read(content: str) -> object:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _lock(descriptor: int, directory: Path, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise UsageError(
                    f"the checkpoint {directory} is in use by another process",
                    "wait for it, stop it, or choose another --checkpoint",
                ) from error
            time.sleep(0.1)
