"""Pages of one file: style, script and data inside, nothing loaded, nothing trusted.

Every text passes the template's escaping; data for the charts stands in a block that no browser
runs. The content security policy allows exactly our own style and script, by their hashes.
"""

import base64
import hashlib
import json
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, Environment, TemplateNotFound
from markupsafe import Markup

from espbench import __version__
from espbench.reports.counts import MEANINGS
from espbench.reports.reading import gibibytes
from espbench.reports.sentences import NOTHING, show, show_ms

NAMES = {
    "correctness": "Are the answers right?",
    "load": "Was the load as asked?",
    "sustainability": "Does it keep up?",
    "objective": "Is it fast enough?",
}
FIGURES = (
    ("latency_ms_after_warmup", "after warm-up"),
    ("latency_ms", "all answers"),
    ("end_to_end_ms_after_warmup", "from due time, after warm-up"),
    ("end_to_end_ms", "from due time, all answers"),
    ("commit_latency_ms_after_warmup", "until the commit, after warm-up"),
    ("commit_latency_ms", "until the commit, all answers"),
    ("update_latency_ms", "of a window's last update, from its last input"),
)
WORDS = (
    ("answer", "a record that the query must give for its input, or a row that it must write"),
    ("lag", "answers owed and not yet given, at a moment"),
    (
        "keeps up",
        "lag and latency do not grow, and the rest is answered soon after the sender's end",
    ),
    ("objective", "the limit that a percentile of the latency after warm-up must stay below"),
    ("warm-up", "the first seconds, shaded in the charts and counted apart"),
    ("due time", "when the schedule wanted a record sent, whatever really happened"),
    ("lateness", "from a record's due time to the broker's stamp: the sender's and broker's share"),
    ("incorrect, unknown", "answers are missing or wrong; evidence is missing to tell"),
)
# Of a long text begin and end are shown: what is told apart stands at either.
_BEGIN, _END = 100, 60


class _Templates(BaseLoader):
    """The templates beside this module, wherever the package is installed."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, None, None]:  # noqa: ARG002 - the contract
        try:
            return _text(template), None, None
        except OSError as error:
            raise TemplateNotFound(template) from error


def policy_of(scripts: tuple[str, ...], *, connect: bool) -> str:
    """The content security policy of a page; with `connect` it may ask where it came from."""
    allowed = " ".join(f"'{_hash(_text(name))}'" for name in scripts)
    return (
        f"default-src 'none'; img-src data:; style-src '{_hash(_text('style.css'))}'; "
        f"script-src {allowed}; base-uri 'none'; form-action 'none'"
        + ("; connect-src 'self'" if connect else "")
    )


def render(
    template: str,
    charts: dict[str, Any],
    *,
    scripts: tuple[str, ...] = ("charts.js",),
    connect: bool = False,
    **values: Any,
) -> str:
    """A page from a template; `charts` are the documents that the scripts draw, by id."""
    page = _environment().get_template(template)
    return page.render(
        policy=policy_of(scripts, connect=connect),
        # Ours, and hashed; escaping would change them.
        style=Markup(_text("style.css")),  # noqa: S704
        scripts=[Markup(_text(name)) for name in scripts],  # noqa: S704
        charts_json=_json_block(charts),
        version=__version__,
        names=NAMES,
        figures=FIGURES,
        words=WORDS,
        meanings=MEANINGS,
        **values,
    )


def report_page(report: dict[str, Any]) -> str:
    """report.html of a report document."""
    charts = {
        f"q{at}-{chart['name']}": chart
        for at, query in enumerate(report["queries"])
        for chart in query["charts"]
    }
    strips = report["published"]["charts"]
    drawn = [value for each in strips for strip in each["series"] for value in strip["values"]]
    most = max(drawn, default=10)
    charts |= {f"published-{at}": each | {"most": most} for at, each in enumerate(strips)}
    return render("report.html", charts, report=report)


@cache
def _environment() -> Environment:
    environment = Environment(loader=_Templates(), autoescape=True, trim_blocks=True)
    environment.filters |= {
        "show": show,
        "show_ms": show_ms,
        "moment": _moment,
        "gibibytes": gibibytes,
        "shortened": _shortened,
    }
    return environment


@cache
def _text(name: str) -> str:
    place = files("espbench.reports").joinpath("templates").joinpath(name)
    return place.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _json_block(document: Any) -> Markup:
    """JSON that cannot end its own script element."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - escaped for the place where it stands


def _moment(value: Any) -> str:
    try:
        when = datetime.fromisoformat(str(value)).astimezone(UTC)
    except ValueError:
        return NOTHING if value is None else str(value)
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"


def _shortened(value: Any) -> str:
    text = NOTHING if value is None else str(value)
    return text if len(text) <= _BEGIN + _END else f"{text[:_BEGIN]} … {text[-_END:]}"
