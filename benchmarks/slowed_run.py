"""Does `espbench compare` notice? Copies a stored run with every latency multiplied.

    python benchmarks/slowed_run.py results/RUN /tmp/slowed 1.3
    espbench compare results/RUN /tmp/slowed --fail p90:+10%     # exit code 6
    python benchmarks/slowed_run.py results/RUN /tmp/equal 1.0
    espbench compare results/RUN /tmp/equal --fail p90:+10%      # exit code 0

The copy has the latencies, and the verdicts' figures made of them; logs and captures stay behind.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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


if __name__ == "__main__":
    slow_down(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
