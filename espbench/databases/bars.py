"""Bars as inline SVG: one figure, a bar per profile."""

from html import escape

from espbench.databases.figures import Figure

_WIDTH, _ROW, _LABEL, _VALUE = 640, 26, 170, 90


def bars(figure: Figure, values: list[tuple[str, float | None]]) -> str:
    """A chart; a profile without the figure has a dash instead of a bar."""
    most = max((value for _, value in values if value is not None), default=0.0) or 1.0
    room = _WIDTH - _LABEL - _VALUE
    rows = []
    for number, (name, value) in enumerate(values):
        top = number * _ROW
        width = 0.0 if value is None else max(1.0, room * value / most)
        text = "-" if value is None else f"{value:,.{figure.digits}f}"
        rows.append(
            f'<text x="{_LABEL - 8}" y="{top + 17}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{_LABEL}" y="{top + 4}" width="{width:.1f}" height="{_ROW - 8}" rx="2"/>'
            f'<text x="{_LABEL + width + 8:.1f}" y="{top + 17}" class="value">{text}</text>'
        )
    better = "more is better" if figure.more else "less is better"
    title = f"{figure.title} ({figure.unit})"
    return (
        f"<figure><figcaption>{escape(title)} <small>{better}</small></figcaption>"
        f'<svg viewBox="0 0 {_WIDTH} {len(values) * _ROW}" role="img" '
        f'aria-label="{escape(title)}">{"".join(rows)}</svg></figure>'
    )
