"""A comparison for people: in the terminal and as Markdown."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from espbench.compare.figures import SHOWN
from espbench.reports.markdown import escaped, table
from espbench.reports.sentences import NOTHING, show

# A cell that is cut short cannot be read; better a line that the terminal folds.
_LEAST_WIDTH = 170
_SIGNS = {"met": "✅", "missed": "❌", "unsure": "⚠️", "not judged": "➡️", "not comparable": "⚠️"}
_COLOURS = {True: "red", False: "green", None: ""}


def spread_text(spread: dict[str, Any] | None) -> str:
    """The median, and lowest and highest where there are several."""
    if spread is None:
        return NOTHING
    if spread["n"] == 1:
        return show(spread["median"])
    return f"{show(spread['median'])} [{show(spread['min'])} … {show(spread['max'])}]"


def print_comparison(console: Console, comparison: dict[str, Any]) -> None:
    """The comparison in the terminal."""
    wide = Console(file=console.file, width=max(console.width, _LEAST_WIDTH))
    for side in comparison["sides"]:
        wide.print(_table(comparison["base"], side))
        for line in _remarks(side):
            wide.print(escape(line), highlight=False)
    for each in comparison["gates"]:
        if each["status"] not in {"met", "not judged"}:
            where = f" of {each['query']}" if each["query"] else ""
            line = f"{each['status']}: {each['gate']}{where}: {each['text']}"
            wide.print(escape(line), highlight=False)


def _table(base: dict[str, Any], side: dict[str, Any]) -> Table:
    title = f"{side['name']} ({_runs(side)}) beside {base['name']} ({_runs(base)})"
    shown = Table(title=escape(title), box=None, padding=(0, 1))
    for name in ("query", "figure"):
        shown.add_column(name, no_wrap=True)
    for name in ("base", "new", "change"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("confidence", no_wrap=True)
    for query in side["queries"]:
        for at, row in enumerate(_shown(query)):
            colour = _COLOURS[row["worse"]]
            word = f"[{colour}]{row['word']}[/]" if colour else row["word"]
            shown.add_row(
                escape(query["query"]) if at == 0 else "",
                row["title"],
                escape(spread_text(row["base"])),
                escape(spread_text(row["new"])),
                row["change_text"],
                word + _probability(row),
            )
    return shown


def _remarks(side: dict[str, Any]) -> list[str]:
    lines = []
    if side["reasons"]:
        lines.append(f"not comparable: {'; '.join(side['reasons'])}")
    if side["changed"]:
        lines.append(f"what differs: {'; '.join(side['changed'][:8])}")
    lines += [f"{query} was not judged on the new side" for query in side["only_in_base"]]
    for query in side["queries"]:
        lines += [
            f"{query['query']}: {check['name']} was {check['base']}, is {check['new']}"
            for check in query["checks"]
            if check["worse"]
        ]
    return lines


def comparison_markdown(comparison: dict[str, Any]) -> str:
    """The comparison as GitHub-flavoured Markdown."""
    base = comparison["base"]
    lines: list[str] = []
    for side in comparison["sides"]:
        lines += [f"### {escaped(side['name'])} beside {escaped(base['name'])}", ""]
        lines += [f"{_runs(side)} beside {_runs(base)}; medians in ms [lowest … highest].", ""]
        lines += [f"> {escaped(line)}\n" for line in _remarks(side)]
        rows = [
            [
                escaped(query["query"]) if at == 0 else "",
                row["title"],
                escaped(row["word"]) + _probability(row),
                spread_text(row["base"]),
                spread_text(row["new"]),
                row["change_text"] or NOTHING,
            ]
            for query in side["queries"]
            for at, row in enumerate(_shown(query))
        ]
        lines += table(["query", "figure", "confidence"], ["base", "new", "change"], rows)
        lines.append("")
    if comparison["gates"]:
        lines += ["### Gates", ""]
        lines += [
            f"- {_SIGNS[each['status']]} {escaped(each['gate'])} {escaped(each['query'])}: "
            f"{each['status']}, {escaped(each['text'])}"
            for each in comparison["gates"]
        ]
    return "\n".join(lines).rstrip() + "\n"


def _shown(query: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row
        for row in query["figures"]
        if row["name"] in SHOWN and (row["base"] is not None or row["new"] is not None)
    ]


def _probability(row: dict[str, Any]) -> str:
    return "" if row["p_value"] is None else f" (p = {row['p_value']:.3f})"


def _runs(side: dict[str, Any]) -> str:
    count = len(side["runs"])
    return "1 run" if count == 1 else f"{count} runs"
