"""Where things are: the state directory holds all that is not a result."""

import os
from dataclasses import dataclass
from pathlib import Path

from espbench.config import Settings
from espbench.errors import MachineError


@dataclass(frozen=True, slots=True)
class StateDir:
    """The layout of the state directory; every path is absolute."""

    root: Path

    @classmethod
    def of(cls, settings: Settings) -> "StateDir":
        """The state directory of this configuration (not made yet)."""
        return cls(settings.state_dir.expanduser().resolve())

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


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a small file so that a reader sees the old one or the whole new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
