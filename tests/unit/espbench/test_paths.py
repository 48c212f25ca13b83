"""Files are replaced as a whole; what is no file is left alone."""

import os
from pathlib import Path

import pytest

from espbench.errors import MachineError
from espbench.paths import write_atomically


def test_a_pipe_or_device_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(MachineError, match="not a file"):
        write_atomically(pipe, "text")
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("real")
    write_atomically(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "real").read_text() == "new"
