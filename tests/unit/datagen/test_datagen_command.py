import gzip
import json
from pathlib import Path

import pytest

from datagen import plan, sensors
from datagen.parameters import Parameters
from espbench.cli.datagen import datagen
from espbench.errors import ConfigError, InputError, UsageError


@pytest.fixture(autouse=True)
def small_population(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's own defaults take seconds; these tests need a population, not a large one."""
    small = {"districts": 1, "customers": 20, "items": 50}
    original = Parameters.model_copy
    monkeypatch.setattr(
        Parameters,
        "model_copy",
        lambda self, *, update=None, deep=False: original(
            self, update={**(update or {}), **small}, deep=deep
        ),
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ESPBENCH_STATE_DIR", raising=False)


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_the_default_directory_is_named_by_content_and_found_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    datagen(scale=1, sensor_rows=100, workers=1, json=True, quiet=True)
    first = document(capsys)
    assert Path(str(first["directory"])).parent == tmp_path / ".espbench" / "data"
    assert first["reused"] is False
    datagen(scale=1, sensor_rows=100, workers=1, json=True, quiet=True)
    second = document(capsys)
    assert second["reused"] is True
    assert second["data_sha256"] == first["data_sha256"]
    datagen(scale=1, sensor_rows=101, workers=1, json=True, quiet=True)
    assert document(capsys)["directory"] != first["directory"]


def test_out_gets_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "data"
    datagen(out=out, scale=1, sensor_rows=10, workers=1, quiet=True)
    assert capsys.readouterr().out == ""
    names = {path.name for path in out.iterdir()}
    assert names == {
        *("item.csv", "customer.csv", "orders.csv", "order_line.csv", "production_order.csv"),
        *("production_order_line.csv", "workplace.csv", "production_times.csv"),
        *("sensor-1.csv", "sensor-2.csv", "manifest.json"),
    }


def test_real_sensor_files_are_taken_whole_unless_told_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, _count = sensors.render(Parameters(seed=3), 1, 0, 70)
    real = tmp_path / "real.gz"
    lines = [line.rpartition(b"\t")[0] for line in rows.splitlines()]
    real.write_bytes(gzip.compress(b"\r\n".join(lines) + b"\r\n"))
    datagen(out=tmp_path / "a", scale=1, sensor_2=real, workers=1, quiet=True, json=True)
    capsys.readouterr()
    whole = (tmp_path / "a" / "sensor-2.csv").read_bytes().splitlines()
    assert whole == [line + b"\t2" for line in lines]
    assert (tmp_path / "a" / "sensor-1.csv").read_bytes().count(b"\n") == 600_011
    datagen(out=tmp_path / "b", scale=1, sensor_2=real, sensor_rows=30, workers=1, quiet=True)
    assert (tmp_path / "b" / "sensor-2.csv").read_bytes().splitlines() == whole[:30]
    assert (tmp_path / "b" / "sensor-1.csv").read_bytes().count(b"\n") == 30


def test_a_wrong_real_file_leaves_no_data_set(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("ts,index,mf01\n")
    with pytest.raises(InputError, match=r"wrong\.txt, line 1: 1 columns"):
        datagen(out=tmp_path / "out", scale=1, sensor_1=wrong, workers=1, quiet=True)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_impossible_values_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.scale = 0"):
        datagen(out=tmp_path, scale=0)
    with pytest.raises(ConfigError, match=r"data\.downtimes = 'never'"):
        datagen(out=tmp_path, downtimes="never")
    with pytest.raises(UsageError, match="no locale 'xx_XX'"):
        datagen(out=tmp_path, scale=1, sensor_rows=1, locale="xx_XX", workers=1)


def test_long_work_is_announced_and_what_is_there_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    datagen(scale=1, sensor_rows=100, workers=1)
    assert "to make" not in capsys.readouterr().err
    monkeypatch.setattr(plan, "expected_rows", lambda _parameters: 700_000_000)
    datagen(scale=1, sensor_rows=100, workers=1)
    assert "to make" not in capsys.readouterr().err
    datagen(scale=1, sensor_rows=101, workers=1)
    assert "about 700,000,000 rows, 0.0 GB, roughly 17 min to make" in capsys.readouterr().err
