"""Draw every load profile as docs/profiles/<name>.svg: `.venv/bin/python tools/profile_plots.py`.

Run with the environment's Python, from anywhere. 100 records/s over 60 s, the parameters below.
"""

import tempfile
from pathlib import Path

import numpy as np

from sender.profile_options import parse_profile
from sender.schedule import Schedule

EXAMPLES = {
    "constant": "",
    "increasing": "",
    "decreasing": "",
    "cosine": "amplitude=60,period=30,noise=8",
    "random-walk": "step=15",
    "steps": "",
    "burst-at-start": "burst=3,seconds=10",
    "periodic-bursts": "burst=3,seconds=3,period=15",
    "csv": "",
}
RATE, DURATION_S, STEP_MS = 100.0, 60.0, 250
RATES = "0,50\n20,0\n30,180\n45,90\n"
WIDTH, HEIGHT, MARGIN = 420, 130, 26


def rates(name: str, parameters: str) -> np.ndarray:
    """Records/s in every quarter of a second."""
    with tempfile.TemporaryDirectory() as directory:
        if name == "csv":
            path = Path(directory) / "rates.csv"
            path.write_text(RATES, encoding="utf-8")
            parameters = f"file={path}"
        profile = parse_profile(f"{name}:{parameters}", rate=RATE, duration_s=DURATION_S)
    edges = np.arange(0, DURATION_S * 1000 + 1, STEP_MS).astype(np.int64) * 1_000_000
    return np.diff(Schedule(profile, DURATION_S).profile.count(edges)) * 1000 / STEP_MS


def svg(name: str, parameters: str) -> str:
    """One small plot: rate over time."""
    values = rates(name, parameters)
    top = float(np.ceil(values.max() / 50) * 50)
    x_step = (WIDTH - 2 * MARGIN) / len(values)
    points = " ".join(
        f"{MARGIN + place * x_step:.1f},{HEIGHT - MARGIN - value / top * (HEIGHT - 2 * MARGIN):.1f}"
        for index, value in enumerate(values)
        for place in (index, index + 1)
    )
    base, right = HEIGHT - MARGIN, WIDTH - MARGIN
    title = f"{name}{':' if parameters else ''}{parameters}"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" \
font-family="sans-serif" font-size="10">
<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>
<path d="M{MARGIN} {MARGIN}V{base}H{right}" fill="none" stroke="#888"/>
<polyline points="{points}" fill="none" stroke="#1664a8" stroke-width="1.5"/>
<text x="{MARGIN}" y="14">{title}</text>
<text x="{MARGIN - 3}" y="{MARGIN + 4}" text-anchor="end">{top:.0f}</text>
<text x="{MARGIN - 3}" y="{base}" text-anchor="end">0</text>
<text x="{right}" y="{HEIGHT - 12}" text-anchor="end">{DURATION_S:.0f} s</text>
</svg>
"""


def main() -> None:
    """Write them all."""
    directory = Path(__file__).parents[1] / "docs" / "profiles"
    directory.mkdir(exist_ok=True)
    for name, parameters in EXAMPLES.items():
        (directory / f"{name}.svg").write_text(svg(name, parameters), encoding="utf-8")


if __name__ == "__main__":
    main()
