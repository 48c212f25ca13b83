"""The calibration of the sensor look-alikes: their figures beside the published ones, as Markdown.

By default the streams of a seed are drawn; `--file` takes a sensor file instead, a generated one or
a real DEBS 2012 one, so that both can be compared. `--histograms` adds them, with logarithmic bars.

    python benchmarks/calibration.py [--seed 2021] [--rows 600011] [--histograms] [--file FILE …]
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv

from datagen import calibration, signals
from datagen.calibration import Ints

PERCENTILES = (0.1, 1, 5, 25, 50, 75, 95, 99, 99.5, 99.9)
WIDTHS = {"mf01": 250, "mf02": 250, "mf03": 100}
# The sensor's columns among those of a row.
COLUMNS = {"mf01": 2, "mf02": 3, "mf03": 4}


def main() -> None:
    """Draw or read, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=2021)
    parser.add_argument("--rows", type=int, default=600_011)
    parser.add_argument("--windows", type=int, default=80)
    parser.add_argument("--histograms", action="store_true")
    parser.add_argument("--file", type=Path, action="append", default=[])
    given = parser.parse_args()
    if given.file:
        streams = {path.name: read(path) for path in given.file}
    else:
        streams = {f"stream {number}": draw(given.seed, number, given.rows) for number in (1, 2)}
    print("\n".join(table(streams, given.windows)))
    print("\n".join(["", *percentiles(streams)]))
    if given.histograms:
        for name, stream in streams.items():
            for column, values in stream.items():
                print(f"\n{name}, {column}: classes of {WIDTHS[column]}, rows, log10")
                print("\n".join(calibration.bars(values, WIDTHS[column])))


def draw(seed: int, number: int, rows: int) -> dict[str, Ints]:
    """A look-alike's columns."""
    drawn = signals.draw(seed, number, 0, rows)
    return {"mf01": drawn.mf01, "mf02": drawn.mf02, "mf03": drawn.mf03}


def read(path: Path) -> dict[str, Ints]:
    """The columns of a sensor file, plain or gzipped."""
    content = pacsv.read_csv(
        path,
        read_options=pacsv.ReadOptions(autogenerate_column_names=True),
        parse_options=pacsv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=pacsv.ConvertOptions(include_columns=[f"f{n}" for n in COLUMNS.values()]),
    )
    return {name: content[f"f{number}"].to_numpy() for name, number in COLUMNS.items()}


def table(streams: dict[str, dict[str, Ints]], windows: int) -> list[str]:
    """Every figure beside the published one."""
    found = [calibration.findings(**stream, windows=windows) for stream in streams.values()]
    lines = [f"| | published | {' | '.join(streams)} |", "|---|---|" + "---|" * len(streams)]
    for row in zip(*found, strict=True):
        first = row[0]
        values = " | ".join(one.found for one in row)
        lines.append(f"| {first.figure} | {first.published} | {values} |")
    return lines


def percentiles(streams: dict[str, dict[str, Ints]]) -> list[str]:
    """Percentiles of every column."""
    heads = " | ".join(f"{percentile}" for percentile in PERCENTILES)
    lines = [f"| percentile | {heads} |", "|---|" + "---|" * len(PERCENTILES)]
    for name, stream in streams.items():
        for column, values in stream.items():
            shown = " | ".join(f"{value:,.0f}" for value in np.percentile(values, PERCENTILES))
            lines.append(f"| {name}, `{column}` | {shown} |")
    return lines


if __name__ == "__main__":
    main()
