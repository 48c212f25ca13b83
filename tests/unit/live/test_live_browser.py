"""The live page in a real browser: it asks, draws, grows, and notices the end."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from espbench.live.files import RunFiles
from espbench.live.look import Looker
from espbench.live.serve import Board, served
from tests.unit.live.conftest import FakeTail, Growing

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="there is no chromium here (Debian: apt-get install chromium)"
)


LOOKS = 8


class GrowingBoard(Board):
    """Looks at the run whenever it is asked; after some looks the run ends."""

    def __init__(self, looker: Looker, growing: Growing) -> None:
        self.looker, self.growing, self.asked = looker, growing, 0
        super().__init__(looker.document(), 0.2)

    def newest(self) -> bytes:
        self.asked += 1
        if self.asked == LOOKS:
            self.growing.finish()
        self.looker.look()
        self.put(self.looker.document())
        return super().newest()


def test_the_curves_grow_until_the_run_ends(growing: Growing, tmp_path: Path) -> None:
    growing.begin("identify-errors", "send")
    growing.batch("identify-errors", 400)
    looker = Looker(RunFiles(growing.run.root), lambda *_: FakeTail())  # type: ignore[arg-type]
    looker.look()
    board = GrowingBoard(looker, growing)
    with served(board, 0) as address:
        dom = subprocess.run(
            [
                str(BROWSER),
                "--headless=new",
                *(["--no-sandbox"] if os.geteuid() == 0 else []),
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
                f"--user-data-dir={tmp_path / 'profile'}",
                "--virtual-time-budget=20000",
                "--dump-dom",
                address,
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            env=os.environ | {"HOME": str(tmp_path)},
        ).stdout
    head = re.search(r"<html[^>]*>", dom)
    assert head is not None
    marks = dict(re.findall(r'data-(\w+)="([^"]*)"', head.group()))
    assert "errors" not in marks, marks
    # It asked again and again, and no more once the run was over.
    assert (int(marks["looks"]), marks["over"]) == (LOOKS, "yes")
    assert board.asked == LOOKS
    assert int(marks["drawn"]) >= 4, "rates, lag, latency and batches have something to show"
    assert "Latency so far" in dom
    assert "identify-errors" in dom
    assert not re.search(r'="[^"]*(NaN|undefined|Infinity)', dom.partition("<script")[0])
