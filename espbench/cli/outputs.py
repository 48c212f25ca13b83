"""Standard output and error as a command finds them: closed, full, or with nobody at the other end.

A reader that has gone (`espbench list | head -1`) wants no more; the command goes on to its end
and leaves with the code that it would have left with. What cannot be written for another reason
(a full disk) is an error. What is closed from the start is not wanted either.
"""

import io
import os
import sys
from typing import Any, TextIO


class _Pipe(io.FileIO):
    """A descriptor whose reader may go."""

    used = False

    def write(self, data: Any, /) -> int:
        """Write, or pretend to once nobody reads."""
        self.used = True
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return memoryview(data).nbytes
        except OSError:
            # Where errors cannot be told, that one cannot either; the exit code tells.
            if self.fileno() == 2:
                return memoryview(data).nbytes
            raise


def prepare() -> None:
    """Make both streams such that no command has to care; to be called first of all."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # Else the next file that is opened would take its place, and its output.
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = _text(1, sys.stdout)
    sys.stderr = _text(2, sys.stderr)


def is_silent() -> bool:
    """Whether nothing has been written on standard output so far."""
    raw = sys.stdout.buffer.raw if isinstance(sys.stdout.buffer, io.BufferedWriter) else None
    return isinstance(raw, _Pipe) and not raw.used


def finish() -> None:
    """Write what is left; raises the `OSError` of an output that took it not."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Once is enough: Python's own end would try again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        error.filename = "standard output"
        raise


def _text(descriptor: int, old: TextIO | None) -> io.TextIOWrapper:
    raw = _Pipe(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(old, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=descriptor == 2 or raw.isatty(),
        write_through=descriptor == 2,
    )
