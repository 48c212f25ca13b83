"""`espbench up`, interrupted: what it started ends with it, what ran before goes on."""

from dataclasses import dataclass
from typing import Any

import pytest
from typer.main import get_command

from espbench import services
from espbench.cli import app
from espbench.errors import Interrupted
from espbench.services.service import ServiceStatus


@dataclass
class FakeService:
    name: str
    is_running: bool = False
    error: BaseException | None = None

    def start(self) -> bool:
        if self.error:
            raise self.error
        was_running, self.is_running = self.is_running, True
        return not was_running

    def stop(self) -> bool:
        was_running, self.is_running = self.is_running, False
        return was_running

    def status(self) -> ServiceStatus:
        return ServiceStatus(self.name, "running", 1, "here", "data", "log", {})


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Interrupted("stopped by SIGTERM")])
def test_only_what_it_started_is_stopped(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    ran, fresh = FakeService("postgresql", is_running=True), FakeService("kafka")
    stopped = FakeService("mariadb", error=error)

    def select(*_: Any) -> list[FakeService]:
        return [ran, fresh, stopped]

    monkeypatch.setattr(services, "select", select)
    try:
        code = get_command(app).main(["up"], standalone_mode=False)
    except Interrupted:
        code = 130
    assert code == 130
    assert (ran.is_running, fresh.is_running) == (True, False)
