"""Samples on disk: the file, the draft that a kill leaves, the merge; and the Prometheus text."""

from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from espbench.errors import MachineError
from espbench.monitor import prometheus
from espbench.monitor.store import SCHEMA, SampleWriter, draft_of, merge_system


def row(time_ms: int, component: str = "host", query: str | None = "identity") -> dict[str, Any]:
    known = {"time_ms": time_ms, "host": "here", "component": component, "query": query}
    return known | {"cpu_percent": 12.5, "rss_bytes": 2**33, "threads": 3}


def write(path: Path, *rows: dict[str, Any]) -> None:
    with SampleWriter(path) as writer:
        writer.add(list(rows))


def test_the_columns_are_those_that_the_report_reads(tmp_path: Path) -> None:
    path = tmp_path / "system.parquet"
    write(path, row(1))
    table = pq.read_table(path)
    assert table.schema.equals(SCHEMA)
    assert table.column_names[:15] == [
        *("time_ms", "host", "component", "query", "cpu_percent", "rss_bytes"),
        *("read_bytes", "written_bytes", "net_sent_bytes", "net_received_bytes", "threads"),
        *("voluntary_switches", "involuntary_switches", "gc_ms", "heap_bytes"),
    ]
    assert table.to_pylist()[0]["rss_bytes"] == 2**33
    assert table.to_pylist()[0]["gc_ms"] is None
    assert list(tmp_path.iterdir()) == [path]


def test_a_monitor_without_samples_writes_an_empty_table(tmp_path: Path) -> None:
    write(tmp_path / "system.parquet")
    assert pq.read_table(tmp_path / "system.parquet").num_rows == 0


def test_parts_are_merged_by_time_and_removed(tmp_path: Path) -> None:
    write(tmp_path / "system-b.parquet", row(3, query="b"), row(4, query="b"))
    write(tmp_path / "system-a.parquet", row(2, query="a"), row(1, "kafka", "a"))
    assert merge_system(tmp_path) == tmp_path / "system.parquet"
    assert [path.name for path in tmp_path.iterdir()] == ["system.parquet"]
    merged = pq.read_table(tmp_path / "system.parquet")
    assert merged.schema.equals(SCHEMA)
    assert merged["time_ms"].to_pylist() == [1, 2, 3, 4]
    write(tmp_path / "system-c.parquet", row(5), row(1, "kafka", "a"), row(5, query=None))
    merge_system(tmp_path)
    assert merge_system(tmp_path) == tmp_path / "system.parquet"
    assert pq.read_table(tmp_path / "system.parquet")["time_ms"].to_pylist() == [1, 2, 3, 4, 5, 5]


def test_nothing_to_merge_is_nothing(tmp_path: Path) -> None:
    assert merge_system(tmp_path) is None


def test_a_killed_monitor_loses_only_its_end(tmp_path: Path) -> None:
    path = tmp_path / "system-identity.parquet"
    writer = SampleWriter(path)
    for moment in range(120):
        writer.add([row(moment)])
    draft = draft_of(path)
    content = draft.read_bytes()
    assert not path.exists()
    # Killed here: no end of stream, and the last batch torn in the middle.
    writer.close()
    path.unlink()
    draft.write_bytes(content[:-40])
    merge_system(tmp_path)
    assert pq.read_table(tmp_path / "system.parquet")["time_ms"].to_pylist() == list(range(50))
    assert not draft.exists()


def fetch(port: int, path: str) -> tuple[str, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return text, str(answer.headers["Content-Type"])


def test_prometheus_reads_the_latest_rows() -> None:
    odd = row(7, 'a"b\\c', None) | {"read_bytes": 2.5, "gc_ms": None}
    with prometheus.serve(0) as endpoint:
        endpoint.show([odd])
        text, kind = fetch(endpoint.port, "/metrics")
        assert kind.startswith("text/plain; version=0.0.4")
        assert fetch(endpoint.port, "/other")[0].count("404")
        with pytest.raises(MachineError, match="taken"), prometheus.serve(endpoint.port):
            pass
    labels = 'host="here",component="a\\"b\\\\c"'
    assert f"espbench_read_bytes_per_second{{{labels}}} 2.5 7\n" in text
    assert "# TYPE espbench_cpu_percent gauge\n" in text
    assert f"espbench_rss_bytes{{{labels}}} {2**33} 7\n" in text
    assert "gc_ms" not in text
