"""Writing a run's reports beside its results."""

from pathlib import Path
from typing import Any

from espbench.errors import MachineError
from espbench.paths import make_dir, write_atomically
from espbench.reports.collect import collect
from espbench.reports.junit import junit
from espbench.reports.markdown import markdown
from espbench.reports.page import report_page
from espbench.runs.store import RunDir


def write_reports(run: RunDir, page: Path | None = None) -> tuple[dict[str, Any], Path]:
    """Write report.html (or `page`), junit.xml and summary.md; the report and the page's path.

    The XML and the text stand beside the page.
    """
    report = collect(run)
    path = page or run.root / "report.html"
    make_dir(path.parent)
    write(path, report_page(report))
    write(path.parent / "junit.xml", junit(report))
    write(path.parent / "summary.md", markdown(report))
    return report, path


def write(path: Path, text: str) -> None:
    """Write a file at once or not at all; characters that no encoding has become question marks."""
    try:
        write_atomically(path, text.encode("utf-8", "replace").decode("utf-8"))
    except OSError as error:
        raise MachineError(
            f"cannot write {path}: {error.strerror}", "check permissions and disk"
        ) from error
