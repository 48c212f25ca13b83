"""The page of a comparison: one file, no network, light and dark."""

from html import escape
from typing import Any

from espbench.databases.bars import bars
from espbench.databases.figures import FIGURES, query_figures
from espbench.databases.table import remarks

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2530;--paper:#fff;--soft:#5b6875;--line:#d9dfe5;
--bar:#2f6f9f;
--code:#f4f6f8}
@media(prefers-color-scheme:dark){:root{--ink:#e3e8ed;--paper:#14181d;--soft:#9aa7b3;--line:#313a44;
--bar:#6fb1de;--code:#1d232a}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;
margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2.2rem 0 .6rem}h3{font-size:1rem}
.soft,small{color:var(--soft)}.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{padding:.3rem .7rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(19rem,1fr));gap:1rem 2rem}
figure{margin:0}figcaption{font-weight:600;font-size:.92rem}svg{width:100%;height:auto}
rect{fill:var(--bar)}text{fill:var(--ink);font-size:15px}text.value{fill:var(--soft)}
pre{background:var(--code);padding:.7rem;overflow-x:auto;font-size:.82rem;white-space:pre-wrap}
details{border-top:1px solid var(--line);padding:.4rem 0}summary{cursor:pointer}
.warn{border-left:4px solid #c77700;padding-left:.8rem}
@media print{details{display:block}body{max-width:none}}
"""
# What is drawn; the table has all figures.
_DRAWN = (
    "load",
    "lookup, p50",
    "commit of a batch, p50",
    "commit latency, p90",
    "highest sustained rate",
    "size on disk",
    "log written per update",
    "server's CPU, writes",
)


def page(document: dict[str, Any]) -> str:
    """The whole page; everything that came from outside is escaped."""
    profiles = document["profiles"]
    drawn = [figure for figure in FIGURES if figure.title in _DRAWN and figure.unit != "rows/s"]
    charts = [bars(one, [(each["name"], one.of(each)) for each in profiles]) for one in drawn]
    parts = [
        _head(document),
        *(f'<p class="warn">{escape(line)}</p>' for line in remarks(document)),
        "<h2>At a glance</h2>",
        f'<div class="charts">{"".join(charts)}</div>',
        "<h2>All figures</h2>",
        _figures(profiles),
        _explanation(document),
        "<h2>Load, by table</h2>",
        _loads(profiles),
        "<h2>Profiles</h2>",
        *(_profile(profile) for profile in profiles),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Databases compared</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _head(document: dict[str, Any]) -> str:
    machine, work, busy = document["machine"], document["work"], document["load_average"]
    state = "" if document["state"] == "finished" else f" · <b>{escape(document['state'])}</b>"
    return (
        f"<h1>Databases compared</h1><p class=soft>{escape(document['id'])}{state} · scale "
        f"{document['scale']}, seed {document['seed']} · {work['rate']:g} updates/s for "
        f"{work['duration_s']:g} s, a batch every {work['batch_s'] * 1_000:g} ms · "
        f"{escape(str(machine['processor']))}, {machine['cores']} cores, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB, {escape(str(machine['system']))} · "
        f"load average {busy['before']} before, {busy['after']} after</p>"
    )


def _explanation(document: dict[str, Any]) -> str:
    work = document["work"]
    return (
        "<p class=soft>The writes are those of query 5, driven without Spark: every "
        f"{work['batch_s'] * 1_000:g} ms what is due goes to the database. A batch's update and "
        "commit are the time that the database took; latencies are per record, from the moment "
        "when it was due: to its stamp by the database's clock (update), and until the commit was "
        "acknowledged (commit). They hold the wait for the next batch. A lookup is what query 4 "
        "does whenever its table has grown too old: two new connections and all rows. The highest "
        f"rate was searched in steps of {work['step_s']:g} s: latency growing less than 50 ms a "
        "second, nothing later than a second.</p>"
    )


def _table(header: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _figures(profiles: list[dict[str, Any]]) -> str:
    rows = [
        [f"{figure.title} ({figure.unit})", *(figure.text(each) for each in profiles)]
        for figure in FIGURES
    ]
    rows += [[title, *cells] for title, cells in query_figures(profiles)]
    return _table(["", *(each["name"] for each in profiles)], rows)


def _loads(profiles: list[dict[str, Any]]) -> str:
    loads = [(each.get("load") or {}).get("tables", {}) for each in profiles]
    names = list(dict.fromkeys(name for tables in loads for name in tables))
    rows = [
        [
            name,
            *(f"{one[name]['rows_per_s']:,}" if name in one else "-" for one in loads),
        ]
        for name in names
    ]
    return _table(["rows/s", *(each["name"] for each in profiles)], rows)


def _profile(profile: dict[str, Any]) -> str:
    server = profile.get("server") or {"product": "", "version": ""}
    given = profile["profile"]
    steps = (profile.get("search") or {}).get("tried", [])
    tried = ", ".join(f"{one['rate']:,} {'held' if one['held'] else 'not'}" for one in steps)
    return (
        f"<h3>{escape(profile['name'])} <small>{escape(server['product'])} "
        f"{escape(server['version'])}</small></h3><p>{escape(given.get('note', ''))}</p>"
        + (f"<p class=soft>Search: {escape(tried)}</p>" if tried else "")
        + _details("Profile", _lines(given))
        + _details("Settings that are not the server's defaults", _lines(profile.get("settings")))
        + _details("Size on disk by table (bytes)", _lines(profile.get("size_bytes")))
        + "".join(
            _details(f"Plan: {plan['what']}", f"{plan['statement']}\n\n{plan['plan']}")
            for plan in profile.get("plans") or []
        )
    )


def _lines(mapping: dict[str, Any] | None) -> str:
    return "\n".join(f"{name} = {value}" for name, value in (mapping or {}).items()) or "-"


def _details(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"
