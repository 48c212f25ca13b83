"""A data set as the loader sees it, and reading its files in blocks."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from espbench.errors import InputError

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class TableFile:
    """One file and what its manifest says about it."""

    path: Path
    rows: int
    sha256: str

    def blocks(self) -> Iterator[bytes]:
        """The file's bytes in blocks; raises `InputError` at the end if its sum is wrong."""
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as file:
                while block := file.read(BLOCK_BYTES):
                    digest.update(block)
                    yield block
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror}", "check it") from error
        if digest.hexdigest() != self.sha256:
            raise InputError(
                f"{self.path} is damaged: its SHA-256 sum is not the one in the manifest",
                "make the data again: espbench datagen --force",
            )


@dataclass(frozen=True, slots=True)
class DataSet:
    """The files of the tables by table name, and what identifies them.

    `nominal_run_s` is None where the downtimes do not depend on a run (`downtimes` "2021").
    """

    tables_sha256: str
    tables: dict[str, TableFile]
    production_times: TableFile
    scale: int
    seed: int
    downtimes: str
    nominal_run_s: int | None
