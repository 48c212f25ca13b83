"""The pages in a real browser: opened without errors, drawn, and alone with themselves."""

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from espbench.reports.write import write_reports
from espbench.runs.store import RunDir

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
# How Chromium marks what its page loader fetches ("blink_resource_loader").
BY_A_PAGE = 101845102
FOREIGN = "http://127.0.0.1:9/x.js"
MakeRun = Callable[..., RunDir]

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="there is no chromium here (Debian: apt-get install chromium)"
)


def browse(page: Path, directory: Path, *options: str) -> str:
    """Open a page; what the browser prints, and the requests it made in `net.json`."""
    log = directory / "net.json"
    answer = subprocess.run(
        [
            str(BROWSER),
            "--headless=new",
            # Chromium refuses its sandbox to root; the page is ours.
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-component-update",
            "--disable-background-networking",
            "--disable-sync",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
            f"--user-data-dir={directory / 'profile'}",
            f"--log-net-log={log}",
            "--virtual-time-budget=5000",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=os.environ | {"HOME": str(directory)},
    )
    return answer.stdout


def requested(directory: Path) -> list[str]:
    """Addresses that the page asked for; the browser's own housekeeping is annotated otherwise."""
    text = (directory / "net.json").read_text(encoding="utf-8", errors="replace")
    found = re.findall(rf'"traffic_annotation":{BY_A_PAGE},"url":"((?!file)[^"]+)"', text)
    return sorted(set(found))


def opened(dom: str) -> dict[str, str]:
    """What the page's script wrote on the root element."""
    head = re.search(r"<html[^>]*>", dom)
    assert head is not None
    return dict(re.findall(r'data-(\w+)="([^"]*)"', head.group()))


def test_a_report_opens_without_errors_and_draws_everything(
    make_run: MakeRun, add_system: Callable[[RunDir], None], tmp_path: Path
) -> None:
    run = make_run()
    add_system(run)
    report, page = write_reports(run)
    dom = browse(page, tmp_path, "--dump-dom")
    marks = opened(dom)
    assert "errors" not in marks, marks
    count = sum(len(query["charts"]) for query in report["queries"])
    count += len(report["published"]["charts"])
    assert int(marks["drawn"]) == count == dom.count("<figure")
    assert dom.count('role="img"') == count
    # Lines and clouds are there, not only axes.
    assert len(re.findall(r'class="line t\d', dom)) > 2 * len(report["queries"]) * 8
    assert 'class="cloud c' in dom
    assert not re.search(r'="[^"]*(NaN|undefined|Infinity)', dom.partition("<script>")[0])
    assert dom.count("<button") > 10, "tables cannot be sorted"
    assert not requested(tmp_path)


def test_a_page_that_breaks_is_noticed(make_run: MakeRun, tmp_path: Path) -> None:
    _, page = write_reports(make_run())
    broken = tmp_path / "broken.html"
    text = page.read_text(encoding="utf-8")
    block = re.search(r'(<script type="application/json" id="charts">)(.*?)(</script>)', text)
    assert block is not None
    charts = json.loads(block.group(2))
    charts["q0-latency"]["series"] = None
    damaged = text[: block.start(2)] + json.dumps(charts) + text[block.end(2) :]
    injected = damaged.replace("<footer>", f'<footer><script src="{FOREIGN}"></script>')
    broken.write_text(injected, encoding="utf-8")
    marks = opened(browse(broken, tmp_path, "--dump-dom"))
    assert "q0-latency" in marks["errors"]
    # The content security policy keeps a foreign script from being fetched at all.
    assert not requested(tmp_path)
    # And the test would have seen it.
    broken.write_text(f'<script src="{FOREIGN}"></script>', encoding="utf-8")
    browse(broken, tmp_path, "--dump-dom")
    assert requested(tmp_path) == [FOREIGN]


def test_a_run_without_anything_opens_too(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(state="interrupted", queries=("identify-errors",))
    run.document["queries"] = []
    for path in [*run.root.glob("*.parquet"), *(run.root / "logs").iterdir()]:
        path.unlink()
    _, page = write_reports(run)
    marks = opened(browse(page, tmp_path, "--dump-dom"))
    assert marks == {"drawn": "0"}


def look(page: Path, directory: Path, expression: str, width: int = 1200) -> Any:
    """What an expression of `d`, the opened page's document, is worth, as JSON."""
    frame = directory / "frame.html"
    frame.write_text(
        f"<!doctype html><iframe id=f width={width} height=900 src='{page.as_uri()}'></iframe>"
        "<script>onload = () => { const d = document.getElementById('f').contentDocument;"
        f"document.title = JSON.stringify({expression}); }}</script>",
        encoding="utf-8",
    )
    dom = browse(frame, directory, "--dump-dom", "--allow-file-access-from-files")
    found = re.search(r"<title>(.*?)</title>", dom)
    assert found is not None
    return json.loads(html.unescape(found.group(1)))


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_is_wider_than_the_screen(make_run: MakeRun, tmp_path: Path, width: int) -> None:
    run = make_run(queries=("identify-errors",))
    # Names come from files; nothing says that they are short.
    for part in (run.document["machine"], run.document["versions"]):
        part["processor"] = "W" * 400
    run.document["run_id"] = run.document["queries"][0]["load"]["reasons"] = ["W" * 400]
    _, page = write_reports(run)
    root = "d.documentElement"
    wanted, given = look(page, tmp_path, f"[{root}.scrollWidth, {root}.clientWidth]", width)
    assert wanted <= given


def test_the_limit_is_written_where_no_data_can_be(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(slower=30)
    for query in run.document["queries"]:
        path = run.root / "logs" / f"{query['query']}-sender.json"
        sender = json.loads(path.read_text(encoding="utf-8"))
        sender["settings"]["lateness_limit_ms"] = 1.5
        path.write_text(json.dumps(sender), encoding="utf-8")
    _, page = write_reports(run)
    box = "e.getBoundingClientRect()"
    heights = look(
        page,
        tmp_path,
        "[...d.querySelectorAll('.mark-label')].map((e) => "
        f"[e.textContent, {box}.bottom, e.closest('svg').querySelector('.mark') !== null,"
        " Math.min(...[...e.closest('svg').querySelectorAll('[clip-path] path')]"
        f".map((e) => {box}.top))])",
    )
    assert len(heights) == 2 * 2, "latency and lateness of two queries"
    for label, bottom, is_drawn, top_of_data in heights:
        assert is_drawn, label
        assert bottom < top_of_data, label


def test_dashes_are_sorted_last_both_ways(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(queries=("identity", "identify-errors", "persist-processing-times"))
    run.document["queries"][1]["latency_ms_after_warmup"]["p99"] = None
    _, page = write_reports(run)
    table = "d.querySelector('table.sortable')"
    order = f"[...{table}.tBodies[0].rows].map((row) => row.cells[0].textContent)"
    head = f"{table}.tHead.rows[0].cells[9]"
    click = f"{head}.firstChild.click()"
    name, up, down = look(
        page, tmp_path, f"[{head}.textContent, ({click}, {order}), ({click}, {order})]"
    )
    assert name == "p99"
    assert up[-1] == down[-1] == "identify-errors"
    assert up[:2] == down[1::-1]
