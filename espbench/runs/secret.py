"""A secret for the steps of a run: in a file that exists in memory alone, while the run lives."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr


@contextmanager
def secret_file(secret: SecretStr | None) -> Iterator[Path | None]:
    """The path under which this user's processes can read the secret; None where there is none.

    On Linux it is a descriptor of this process, so that nothing stays even if it is killed.
    """
    if secret is None:
        yield None
        return
    content = f"{secret.get_secret_value()}\n".encode()
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("espbench")
        try:
            os.write(descriptor, content)
            yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield Path(file.name)
