"""A run at the wheel: the playbook goes its way, the driver watches, shows and writes down.

Where a part dies or the user stops the run, the commands of the step are ended; Ansible then
sees its step fail and cleans up as after any failure. Only where Ansible itself is gone or hangs,
a second, short playbook cleans up, and at last the driver alone.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from espbench import services
from espbench.background import Background, known_code
from espbench.config import PREFIX, Settings, secrets_in
from espbench.errors import EspbenchError, ServiceError, UsageError
from espbench.logs import LOGGER
from espbench.names import find_query
from espbench.parent import VARIABLE as RUN_PROCESS
from espbench.parent import mark
from espbench.paths import StateDir
from espbench.runs.ansible import Playbook
from espbench.runs.events import Began, Ended, Failed, News, Reader
from espbench.runs.plan import (
    PLAYBOOKS,
    Wishes,
    pid_file,
    started_file,
    topics_file,
)
from espbench.runs.store import RunDir
from espbench.runs.view import View
from espbench.runs.watch import Watch, end_commands, end_everything
from espbench.services.process import ProcessRecord

_TICK_S = 0.1
# In Ansible's words, which has no code of its own for it.
_NO_INVENTORY = "parse inventory source"
# Steps that start servers, here or (broker, worker) on other hosts.
_SERVER_STEPS = frozenset({"services", "broker", "worker"})
# For ends of steps, the query's stop and the services' stop.
WIND_DOWN_S = 150.0


class StepFailedError(EspbenchError):
    """A step of the run failed; carries the step's own message and exit code."""

    def __init__(self, failed: Failed, log: Path) -> None:
        super().__init__(f"{failed.step.name}: {failed.message}", f"log: {log}")
        self.exit_code = known_code(failed.code)


@dataclass(slots=True)
class Driver:
    """One run in progress."""

    settings: Settings
    run_dir: RunDir
    wishes: Wishes
    view: View
    password_file: Path | None
    watch: Watch = field(default_factory=Watch)
    mark: str = field(default_factory=mark)
    failure: Failed | None = None
    where: str = "the start"

    def run(self) -> None:
        """Run the playbook to its end; raises what ended it before."""
        options = []
        if self.wishes.steps:
            options += ["--tags", ",".join(self.wishes.steps)]
        if self.wishes.skip:
            options += ["--skip-tags", ",".join(self.wishes.skip)]
        playbook = self._playbook("run", options)
        # Tells `espbench watch` whose end would be the run's.
        ProcessRecord.of(os.getpid()).write(self.run_dir.root / "run.pid")
        try:
            playbook.start()
            self._follow(playbook)
        except BaseException:
            self._wind_down(playbook)
            raise
        finally:
            end_everything(self.mark)
            self._finish_cleaning(playbook)
            for file in self.run_dir.root.glob("*.pid*"):
                file.unlink()

    def _follow(self, playbook: Playbook) -> None:
        reader = Reader(self.run_dir.root / "logs")
        while playbook.alive(_TICK_S):
            self._take_events(playbook, reader, self._note)
            self.view.follow()
            if self.failure is None:
                self.watch.check(self.where)
        self._take_events(playbook, reader, self._note)
        if self.failure is not None:
            raise StepFailedError(self.failure, self.run_dir.root / "logs" / self.failure.step.log)
        if (problem := playbook.ended_badly()) is not None:
            if _NO_INVENTORY in problem:
                raise UsageError(
                    f"{self.wishes.inventory} is no inventory that Ansible can read",
                    f"see {self.run_dir.log('ansible')}",
                )
            raise ServiceError(
                f"Ansible stopped during {self.where}: {problem}",
                f"see {self.run_dir.log('ansible')}",
            )

    def _wind_down(self, playbook: Playbook) -> None:
        """Let Ansible clean up after what happened; kill it where that takes too long."""
        reader = Reader(self.run_dir.root / "logs")
        asked: set[int] = set()
        deadline = time.monotonic() + WIND_DOWN_S
        try:
            while playbook.alive(_TICK_S):
                end_commands(self.mark, asked)
                self._take_events(playbook, reader, self.view.take)
                self.view.follow()
                if time.monotonic() > deadline - self._beyond_reach():
                    LOGGER.warning("Ansible is ended; what it began is cleaned up without it")
                    self._kill(playbook)
        except BaseException:
            # Stopped again: no more patience.
            self._kill(playbook)
            raise

    def _beyond_reach(self) -> float:
        """Commands on other hosts cannot be ended from here, so waiting for them is in vain."""
        return WIND_DOWN_S - 5 if self.wishes.inventory else 0.0

    def _kill(self, playbook: Playbook) -> None:
        playbook.kill()
        end_everything(self.mark)

    def _take_events(self, playbook: Playbook, reader: Reader, use: Callable[[News], None]) -> None:
        for event in playbook.events():
            if (news := reader.read(event)) is not None:
                use(news)

    def _note(self, news: News) -> None:
        self.view.take(news)
        if isinstance(news, Began):
            step = news.step
            self.where = f"{step.name} of {step.query}" if step.query else step.name
            if step.name == "query-start":
                query = find_query(step.query or "")
                self.watch.query = Background(
                    pid_file(self.run_dir, query), self.run_dir.log(f"{query.name}-query")
                )
            elif step.name in {"drain", "cleanup"}:
                # From now on the playbook waits for its end, and tells of it.
                self.watch.query = None
            elif step.name == "stop":
                self.watch.servers = []
        elif isinstance(news, Ended):
            of = find_query(news.step.query) if news.step.query else None
            self.run_dir.note_step(news.step.name, of, news.started, news.seconds)
            self._use_answer(news)
        elif isinstance(news, Failed):
            self._note_failure(news)

    def _note_failure(self, failed: Failed) -> None:
        if not failed.fatal:
            LOGGER.warning("%s: %s", failed.step, failed.message)
        elif self.failure is None:
            # A dead server is the cause, the step's own words only its echo.
            self.watch.check(self.where)
            self.failure = failed

    def _use_answer(self, ended: Ended) -> None:
        name, document = ended.step.name, self.run_dir.document
        if name in _SERVER_STEPS and ended.stdout:
            found = json.loads(ended.stdout)
            self._note_services(found.get("services", []), remote=ended.step.remote)
        elif name == "clocks":
            document.setdefault("clocks", []).append(
                {"moment": ended.started.isoformat(), **json.loads(ended.stdout)}
            )
            self.run_dir.save()
        elif name == "drain" and not json.loads(ended.stdout)["ended"]:
            LOGGER.warning(
                "%s had not answered for all input when its time was over", ended.step.query
            )
        elif name == "validate":
            adopt_verdict(self.run_dir, str(ended.step.query))
            if not self.settings.keep_captures:
                shutil.rmtree(self.run_dir.capture(find_query(str(ended.step.query))))

    def _note_services(self, answered: list[dict[str, Any]], *, remote: bool) -> None:
        shown = ("name", "address", "settings")
        for each in answered:
            entry = {key: each[key] for key in shown}
            self.run_dir.document["services"].append(entry)
        self.run_dir.save()
        if not remote:
            # Processes of other hosts are beyond our sight; the steps notice their end.
            self.watch.take_servers(self.settings, [str(each["name"]) for each in answered])

    def _finish_cleaning(self, ended: Playbook) -> None:
        """Clean up what a dead Ansible could not; nothing where it did its work."""
        if not self._left() and not (self.wishes.inventory and ended.killed()):
            return
        playbook = self._playbook("cleanup", ["--tags", "cleanup"])
        playbook.start()
        if playbook.alive(WIND_DOWN_S):
            self._kill(playbook)
        if started_file(self.run_dir).exists() and "services" not in self.wishes.keep:
            names = started_file(self.run_dir).read_text(encoding="utf-8").split()
            for service in services.select(self.settings, names) if names else []:
                service.stop()

    def _left(self) -> bool:
        run_id, keep = str(self.run_dir.document["run_id"]), self.wishes.keep
        servers = started_file(self.run_dir).exists() and "services" not in keep
        alive = all(record.process() for _, record in self.watch.servers)
        topics = "topics" not in keep and any(
            topics_file(self.settings, run_id, find_query(name)).exists()
            for name in self._query_names()
        )
        return servers or (topics and alive)

    def _query_names(self) -> list[str]:
        plan = json.loads((self.run_dir.root / "plan.json").read_text(encoding="utf-8"))
        return [str(query["name"]) for query in plan["queries"]]

    def _playbook(self, name: str, options: list[str]) -> Playbook:
        state = StateDir.of(self.settings).root
        private = state / "ansible" / f"{self.run_dir.document['run_id']}-{name}"
        return Playbook(
            PLAYBOOKS / "run.yml",
            private=private,
            log=self.run_dir.log("ansible"),
            variables=self._variables(private),
            options=[*self._inventories(), *options],
            environment=self._environment(private),
        )

    def _variables(self, private: Path) -> dict[str, str]:
        given = {"wheel": self.wishes.wheel, "wheelhouse": self.wishes.wheelhouse}
        files = {key: str(path.resolve()) for key, path in given.items() if path}
        if self.wishes.inventory:
            files["inventory_given"] = "true"
        return {"run_dir": str(self.run_dir.root), "private": str(private / "secrets"), **files}

    def _inventories(self) -> list[str]:
        files = [PLAYBOOKS / "inventories" / "local.yml"]
        if self.wishes.inventory:
            files.append(self.wishes.inventory.resolve())
        return [word for file in files for word in ("-i", str(file))]

    def _environment(self, private: Path) -> dict[str, str]:
        own = {
            RUN_PROCESS: self.mark,
            "ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"),
            "ANSIBLE_HOST_KEY_CHECKING": "True",
            "ANSIBLE_HOME": str(private / "home"),
            # Without this a step's plain lines would be lost in a buffer if it were killed.
            "PYTHONUNBUFFERED": "1",
        }
        if self.password_file:
            own[f"{PREFIX}DATABASE__PASSWORD_FILE"] = str(self.password_file)
        for name, options in (
            ("KAFKA__OPTIONS", self.settings.kafka.options),
            ("SPARK__CONF", self.settings.spark.conf),
        ):
            if hidden := secrets_in(options):
                own[f"{PREFIX}{name}"] = json.dumps(hidden)
        spoken = [os.environ.get(key) for key in ("LC_ALL", "LC_CTYPE", "LANG")]
        if "UTF" not in next((value for value in spoken if value), "").upper():
            # Ansible refuses any other.
            own["LC_ALL"] = "C.UTF-8"
        return own


def adopt_verdict(run_dir: RunDir, query: str) -> bool:
    """Take the verdict that `validate` wrote into the run; False where there is none."""
    verdict: dict[str, Any]
    try:
        verdict = json.loads((run_dir.root / f"verdict-{query}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    kept = [each for each in run_dir.document["queries"] if each["query"] != query]
    run_dir.document["queries"] = [*kept, verdict]
    run_dir.save()
    with suppress(OSError):
        run_dir.write_summary()
    return True
