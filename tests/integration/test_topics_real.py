"""`espbench topics` on a real broker."""

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from espbench.config import Settings
from espbench.errors import ServiceError, UsageError
from espbench.kafka.admin import KafkaAdmin
from espbench.kafka.made import create_topics
from espbench.kafka.registry import TopicRegistry
from espbench.paths import StateDir
from espbench.services.endpoints import bootstrap_servers


def espbench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "espbench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def run(services: Settings) -> str:
    assert services
    return f"t{uuid.uuid4().hex[:8]}"


def names_of(document: str) -> dict[str, Any]:
    return {each["name"]: each for each in json.loads(document)["topics"]}


def test_create_list_delete(run: str, services: Settings) -> None:
    made = espbench(
        "topics", "create", "--run", run, "--queries", "q4", "--partitions", "2", "--json"
    )
    assert made.returncode == 0, made.stderr
    expected = {f"espbench-{run}-{end}" for end in ("1", "2", "check-machine-power")}
    assert set(names_of(made.stdout)) == expected

    admin = KafkaAdmin(bootstrap_servers(services))
    for topic in expected:
        assert admin.timestamp_type(topic) == "LogAppendTime"
        assert [each.count for each in admin.offsets(topic)] == [0, 0]

    again = espbench("topics", "create", "--run", run, "--queries", "q4")
    assert again.returncode == 2
    assert "already exists" in again.stderr

    listed = names_of(espbench("topics", "list", "--run", run, "--json").stdout)
    assert {name: each["state"] for name, each in listed.items()} == dict.fromkeys(
        expected, "exists"
    )

    deleted = espbench("topics", "delete", "--run", run, "--json")
    assert set(json.loads(deleted.stdout)["deleted"]) == expected
    assert not expected & admin.names()
    assert espbench("topics", "delete", "--run", run).returncode == 2


def test_delete_leaves_a_neighbour_of_the_same_prefix(run: str, services: Settings) -> None:
    admin = KafkaAdmin(bootstrap_servers(services))
    neighbour = f"espbench-{run}-9"
    admin.create([neighbour], partitions=1, replication_factor=1)
    espbench("topics", "create", "--run", run, "--queries", "q3")
    assert espbench("topics", "delete", "--run", run).returncode == 0
    assert neighbour in admin.names()
    admin.delete([neighbour])


def test_a_creation_that_fails_half_way_leaves_nothing(run: str, services: Settings) -> None:
    admin = KafkaAdmin(bootstrap_servers(services))
    registry = TopicRegistry(StateDir.of(services).topics)
    bad = f"espbench-{run}-" + "x" * 300  # longer than Kafka allows
    with pytest.raises(ServiceError, match="cannot make the topic"):
        create_topics(
            admin, registry, run, [f"espbench-{run}-1", bad], partitions=1, replication_factor=1
        )
    assert f"espbench-{run}-1" not in admin.names()
    assert registry.read(run) is None


def test_a_missing_topic_has_no_offsets(run: str, services: Settings) -> None:
    admin = KafkaAdmin(bootstrap_servers(services))
    with pytest.raises(UsageError, match="there is no topic"):
        admin.offsets(f"espbench-{run}-1")


def test_a_broker_that_is_not_there(tmp_path: Path) -> None:
    assert tmp_path
    answer = espbench("topics", "list", "--bootstrap-servers", "127.0.0.1:1")
    assert answer.returncode == 3
    assert "does not answer" in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
