"""Writing files and keeping count: rows, bytes and sums while the bytes pass."""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

from datagen.manifest import FILES, FileEntry
from espbench.errors import MachineError


@dataclass(slots=True)
class _Open:
    file: BinaryIO
    rows: int = 0
    size: int = 0
    sum: Any = field(default_factory=hashlib.sha256)


class Writer:
    """All files of a data set in one directory, written from front to back."""

    def __init__(self, directory: Path) -> None:
        self._files = {name: _Open((directory / name).open("wb")) for name in FILES}
        self.rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        for opened in self._files.values():
            opened.file.close()

    def append(self, name: str, data: bytes, rows: int) -> None:
        """Add a block to a file."""
        opened = self._files[name]
        try:
            opened.file.write(data)
        except OSError as error:
            raise MachineError(
                f"cannot write {name}: {error.strerror}", "make room, or choose another --out"
            ) from error
        opened.sum.update(data)
        opened.size += len(data)
        opened.rows += rows
        self.rows += rows

    def finish(self) -> tuple[FileEntry, ...]:
        """Bring everything to the disk; the entries of the manifest."""
        entries = []
        for name, opened in self._files.items():
            try:
                opened.file.flush()
                os.fsync(opened.file.fileno())
            except OSError as error:
                raise MachineError(
                    f"cannot write {name}: {error.strerror}", "make room, or choose another --out"
                ) from error
            entries.append(
                FileEntry(
                    name=name, rows=opened.rows, bytes=opened.size, sha256=opened.sum.hexdigest()
                )
            )
        return tuple(entries)
