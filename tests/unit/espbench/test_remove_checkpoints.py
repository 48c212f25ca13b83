from pathlib import Path

from espbench.cli.topics import _remove_checkpoints


def test_only_checkpoints_of_queries_go(tmp_path: Path) -> None:
    checkpoint, foreign = tmp_path / "run" / "identity", tmp_path / "run" / "notes"
    for directory in (checkpoint, foreign):
        directory.mkdir(parents=True)
    (checkpoint / "espbench.json").touch()
    _remove_checkpoints(tmp_path / "run")
    assert not checkpoint.exists()
    assert foreign.exists()
    foreign.rmdir()
    _remove_checkpoints(tmp_path / "run")
    assert not (tmp_path / "run").exists()
    _remove_checkpoints(tmp_path / "run")
