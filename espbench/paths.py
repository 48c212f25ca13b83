"""Where things are: the state directory holds all that is not a result."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from espbench.config import Settings
from espbench.errors import ConfigError, MachineError

# Class paths are joined by colons, Kafka's directories by commas, Java's options quoted.
_NOT_IN_PATHS = frozenset(",:;\"'\\\n%")
# Java reads paths in the locale's letters; what Python hands it is UTF-8 in every locale.
JAVA_LOCALE = "C.UTF-8"


@dataclass(frozen=True, slots=True)
class StateDir:
    """The layout of the state directory; every path is absolute."""

    root: Path

    @classmethod
    def of(cls, settings: Settings) -> "StateDir":
        """The state directory of this configuration (not made yet)."""
        root = settings.state_dir.expanduser().resolve()
        if unusable := sorted(set(str(root)) & _NOT_IN_PATHS):
            raise ConfigError(
                f"the state directory {str(root)!r} has {unusable[0]!r} in its path, where Java or "
                "Kafka would split it",
                "choose another one with ESPBENCH_STATE_DIR",
            )
        return cls(root)

    @property
    def jars(self) -> Path:
        """Checked jars, one directory per class path."""
        return self.root / "jars"

    @property
    def data(self) -> Path:
        """Generated data sets."""
        return self.root / "data"

    @property
    def topics(self) -> Path:
        """What topics which run made; only these may be deleted."""
        return self.root / "topics"

    @property
    def logs(self) -> Path:
        """Logs of what belongs to no run."""
        return self.root / "logs"

    def service(self, name: str) -> Path:
        """The home of an embedded service: pid file, log, settings, data."""
        return self.root / "services" / name


def make_dir(path: Path, mode: int = 0o755) -> Path:
    """Make a directory and its parents; a clear error where that cannot be done."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as error:
        raise MachineError(
            f"cannot make the directory {path}: {error.strerror}",
            "check permissions and disk, or choose another place (ESPBENCH_STATE_DIR, --out)",
        ) from error
    return path


@contextmanager
def locked(path: Path, refusal: str | None = None) -> Iterator[None]:
    """Hold the lock file `path`; wait for it, or raise `MachineError` with `refusal` at once."""
    mode = fcntl.LOCK_EX if refusal is None else fcntl.LOCK_EX | fcntl.LOCK_NB
    with ExitStack() as open_file:
        try:
            file = open_file.enter_context(path.open("w"))
            fcntl.flock(file, mode)
        except BlockingIOError as error:
            remedy = "wait for its end, or use another directory"
            raise MachineError(refusal or str(error), remedy) from error
        except OSError as error:
            raise MachineError(
                f"cannot lock {path}: {error.strerror}", "use a state directory of your own"
            ) from error
        yield


def ordinary_file(path: Path) -> Path:
    """Where a file of this name really is or will be, to be replaced as a whole.

    Raises `MachineError` for a device or pipe: root would put a file in its place.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise MachineError(f"{path} is a device or a pipe, not a file", "name a file")
    return path.resolve()


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a small file so that a reader sees the old one or the whole new one."""
    path = ordinary_file(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
