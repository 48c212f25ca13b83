"""Real servers for the integration tests: started once, on free ports, stopped at the end."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from espbench import services as embedded
from espbench.config import Settings, load_settings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "integration" in Path(str(item.fspath)).parts:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory of the tests' own; fetched jars are shared with the checkout's."""
    root = tmp_path_factory.mktemp("state")
    shared_jars = Path(__file__).parents[2] / ".espbench" / "jars"
    shared_jars.mkdir(parents=True, exist_ok=True)
    (root / "jars").symlink_to(shared_jars)
    return root


@pytest.fixture(scope="session")
def services(state_dir: Path) -> Iterator[Settings]:
    """Settings of running embedded services (Kafka and PostgreSQL)."""
    os.environ["ESPBENCH_STATE_DIR"] = str(state_dir)
    # Answers count here, not milliseconds; one test of its own rehearses.
    os.environ["ESPBENCH_SPARK__REHEARSAL"] = "0"
    settings = load_settings(None, {"state_dir": state_dir})
    running = embedded.select(settings)
    try:
        for service in running:
            service.start()
        yield settings
    finally:
        for service in running:
            service.stop()
        del os.environ["ESPBENCH_STATE_DIR"], os.environ["ESPBENCH_SPARK__REHEARSAL"]
