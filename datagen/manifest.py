"""The manifest: what a data set's files are. A directory without it is not a data set."""

import hashlib
import json
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from datagen.parameters import Parameters
from espbench.errors import InputError

NAME = "manifest.json"
FORMAT = "espbench-data/1"

TABLES = (
    "item",
    "customer",
    "orders",
    "order_line",
    "production_order",
    "production_order_line",
    "workplace",
)
PRODUCTION_TIMES = "production_times.csv"
SENSORS = {1: "sensor-1.csv", 2: "sensor-2.csv"}


def table_file(table: str) -> str:
    """The file of a table."""
    return f"{table}.csv"


FILES = (*map(table_file, TABLES), PRODUCTION_TIMES, *SENSORS.values())


class FileEntry(BaseModel):
    """One file of the data set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    rows: int
    bytes: int
    sha256: str


class DowntimeScale(BaseModel):
    """How the times in `workplace.csv` are meant.

    `kind` "run": relative. `origin` stands for the announced start, and the run lasts
    `nominal_run_s` from there. "2021": times as they are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    origin: str | None = None
    nominal_run_s: int | None = None


class Manifest(BaseModel):
    """Parameters, files and sums; holds nothing that differs between two machines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: str = FORMAT
    parameters: Parameters
    downtimes: DowntimeScale
    files: tuple[FileEntry, ...]

    @property
    def data_sha256(self) -> str:
        """The identity of the data set: equal for equal parameters and bytes."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def tables_sha256(self) -> str:
        """The identity of what a database gets: the tables' files and how downtimes are meant."""
        entries = [self.file(table_file(table)).model_dump(mode="json") for table in TABLES]
        text = json.dumps([entries, self.downtimes.model_dump(mode="json")], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def file(self, name: str) -> FileEntry:
        """The entry of a file."""
        return next(entry for entry in self.files if entry.name == name)

    def write(self, directory: Path) -> None:
        """Write the manifest last of all, in one step."""
        document = {"data_sha256": self.data_sha256, **self.model_dump(mode="json")}
        partial = directory / f".{NAME}.partial"
        with partial.open("w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(directory / NAME)


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a complete data set.

    Raises `InputError` where there is none, where it cannot be read, or where a file is missing or
    not as long as it says. Sums are not checked here; `espbench load` checks those it reads.
    """
    path = directory / NAME
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        claimed = document.pop("data_sha256")
        manifest = Manifest.model_validate(document)
    except FileNotFoundError as error:
        raise InputError(
            f"{directory} holds no data set: there is no {NAME}", "make one with `espbench datagen`"
        ) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "check permissions") from error
    except (ValueError, KeyError, AttributeError, TypeError, ValidationError) as error:
        raise InputError(
            f"{path} is not a manifest of this version", "make the data again: espbench datagen"
        ) from error
    if manifest.format != FORMAT or claimed != manifest.data_sha256:
        raise InputError(f"{path} was altered", "make the data again: espbench datagen --force")
    _check_files(directory, manifest)
    return manifest


def _check_files(directory: Path, manifest: Manifest) -> None:
    if {entry.name for entry in manifest.files} != set(FILES):
        raise InputError(
            f"{directory / NAME} does not list every file of a data set",
            "make the data again: espbench datagen --force",
        )
    for entry in manifest.files:
        path = directory / entry.name
        size = path.stat().st_size if path.is_file() else None
        if size != entry.bytes:
            found = "missing" if size is None else f"{size:,} bytes instead of {entry.bytes:,}"
            raise InputError(
                f"{path} is not the file that its manifest describes: {found}",
                "make the data again: espbench datagen --force",
            )
