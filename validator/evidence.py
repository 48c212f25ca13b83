"""What the captured files can and cannot prove.

A *problem* is missing evidence: a damaged file, a gap, records that were never captured. It can
turn a verdict into `unknown`. A *note* is worth saying and changes no verdict.
"""

from dataclasses import dataclass, field

SHOWN_PER_FILE = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """One piece of missing evidence: which file, which line of it (from 1), what is wrong."""

    file: str
    text: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}" if self.line is not None else self.file
        return f"{where}: {self.text}"


@dataclass(slots=True)
class Evidence:
    """The evidence of one topic or table: problems and notes, of which the first few are kept."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    more: int = 0

    @property
    def complete(self) -> bool:
        """True where nothing is known to be missing."""
        return not self.problems

    def add(self, text: str, line: int | None = None) -> None:
        """Record a problem; beyond the first few only their number is kept."""
        if len(self.problems) < SHOWN_PER_FILE:
            self.problems.append(Problem(self.file, text, line))
        else:
            self.more += 1

    def note(self, text: str) -> None:
        """Record something that changes no verdict."""
        self.notes.append(f"{self.file}: {text}")

    def lines(self) -> list[str]:
        """The problems as text, with the number of those left out."""
        shown = [str(problem) for problem in self.problems]
        if self.more:
            shown.append(f"{self.file}: and {self.more:,} more problems")
        return shown
