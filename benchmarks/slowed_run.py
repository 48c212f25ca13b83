"""Does `espbench compare` notice? Copies stored runs with every latency multiplied.

    SLOWED=$(python benchmarks/slowed_run.py 1.3 /tmp/slowed results/RUN results/RUN …)
    espbench compare BASE --new "$SLOWED" --fail p90:+10%     # exit code 6
    EQUAL=$(python benchmarks/slowed_run.py 1.0 /tmp/equal results/RUN results/RUN …)
    espbench compare BASE --new "$EQUAL" --fail p90:+10%      # exit code 0

A directory of a matrix stands for its finished runs. The copies have the latencies, and the
verdicts' figures made of them; logs and captures stay behind. Prints the copies, with commas.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from espbench.runs.matrix import is_matrix, runs_of
from validator.latency import statistics


def slow_down(run: Path, out: Path, factor: float) -> None:
    """Write the copy; latencies keep the whole milliseconds of the broker's clock."""
    out.mkdir(parents=True)
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for verdict in document["queries"]:
        path = run / f"latencies-{verdict['query']}.parquet"
        table = pq.read_table(path)
        after = pc.fill_null(table["after_warmup"], False)  # noqa: FBT003 - a value
        for column, key in (("latency_ms", "latency_ms"), ("end_to_end_ms", "end_to_end_ms")):
            slowed = pc.round(pc.multiply(pc.cast(table[column], pa.float64()), factor))
            table = table.set_column(table.schema.get_field_index(column), column, slowed)
            verdict[key] = statistics(slowed.drop_null().to_numpy())
            kept = slowed.filter(after).drop_null().to_numpy()
            verdict[f"{key}_after_warmup"] = statistics(kept)
        pq.write_table(table, out / path.name)
    document["run_id"] = out.name
    (out / "run.json").write_text(json.dumps(document, indent=2), encoding="utf-8")


def main(factor: float, out: Path, places: list[Path]) -> None:
    """Copy every run below `out`, under its own name."""
    copies = []
    for place in places:
        names = runs_of(place.parent, place.name) if is_matrix(place.name) else [place.name]
        for name in names:
            slow_down(place.parent / name, out / name, factor)
            copies.append(str(out / name))
    sys.stdout.write(",".join(copies) + "\n")


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]), [Path(text) for text in sys.argv[3:]])
