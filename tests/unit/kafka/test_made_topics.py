"""Cluster and record change together, and only what a run recorded is ever deleted."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from espbench.errors import InputError, ServiceError, UsageError
from espbench.kafka.admin import Partition, Topic, topic_exists
from espbench.kafka.made import create_topics, delete_topics
from espbench.kafka.registry import MadeTopic, MadeTopics, TopicRegistry, check_run


@dataclass
class FakeAdmin:
    """A cluster in a dictionary: name to topic id."""

    topics: dict[str, str] = field(default_factory=dict)
    cluster_id: str = "cluster-a"
    bootstrap_servers: str = "fake:9092"
    failure: Exception | None = None
    next_id: int = 0

    def names(self) -> frozenset[str]:
        return frozenset(self.topics)

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        return {
            name: Topic(name, self.topics[name], (Partition(0, 1),))
            for name in names
            if name in self.topics
        }

    def create(self, names: Iterable[str], *, partitions: int, replication_factor: int) -> None:
        assert partitions
        assert replication_factor
        if self.failure:
            raise self.failure
        for name in names:
            self.next_id += 1
            self.topics[name] = f"id-{self.next_id}"

    def delete(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self.topics.pop(name, None)]


@pytest.fixture
def registry(tmp_path: Path) -> TopicRegistry:
    return TopicRegistry(tmp_path / "topics")


def create(
    admin: FakeAdmin, registry: TopicRegistry, *names: str, run: str = "r", partitions: int = 1
) -> MadeTopics:
    return create_topics(
        admin,  # type: ignore[arg-type]
        registry,
        run,
        names,
        partitions=partitions,
        replication_factor=1,
    )


def delete(admin: FakeAdmin, registry: TopicRegistry, run: str = "r") -> list[str]:
    return delete_topics(admin, registry, run)  # type: ignore[arg-type]


def test_made_topics_are_recorded_with_their_cluster(
    registry: TopicRegistry, tmp_path: Path
) -> None:
    create(FakeAdmin(), registry, "p-r-1", "p-r-1", "p-r-sink", partitions=3)
    assert json.loads((tmp_path / "topics" / "r.json").read_text(encoding="utf-8")) == {
        "format": "espbench-topics/1",
        "run": "r",
        "cluster_id": "cluster-a",
        "topics": [
            {"name": "p-r-1", "topic_id": "id-1", "partitions": 3},
            {"name": "p-r-sink", "topic_id": "id-2", "partitions": 3},
        ],
    }


def test_an_existing_topic_is_an_error_and_nothing_is_made_or_recorded(
    registry: TopicRegistry,
) -> None:
    admin = FakeAdmin({"p-r-sink": "foreign"})
    with pytest.raises(UsageError, match="already exists: topic p-r-sink"):
        create(admin, registry, "p-r-1", "p-r-sink")
    assert admin.topics == {"p-r-sink": "foreign"}
    assert registry.read("r") is None


def test_a_second_creation_adds_to_the_record(registry: TopicRegistry) -> None:
    admin = FakeAdmin()
    create(admin, registry, "a")
    create(admin, registry, "b")
    assert delete(admin, registry) == ["a", "b"]


def test_a_failed_creation_leaves_the_old_record(registry: TopicRegistry) -> None:
    admin = FakeAdmin()
    before = create(admin, registry, "a")
    admin.failure = ServiceError("refused")
    with pytest.raises(ServiceError):
        create(admin, registry, "b")
    assert registry.read("r") == before


def test_a_topic_that_another_made_meanwhile_is_not_recorded(registry: TopicRegistry) -> None:
    admin = FakeAdmin(failure=topic_exists(["a"]))
    with pytest.raises(UsageError):
        create(admin, registry, "a")
    assert registry.read("r") is None


def test_a_killed_creation_can_be_cleaned_up(registry: TopicRegistry) -> None:
    admin = FakeAdmin({"a": "id-9"})
    registry.write(MadeTopics("r", "cluster-a", (MadeTopic("a", None, 1), MadeTopic("b", None, 1))))
    assert delete(admin, registry) == ["a"]
    assert registry.read("r") is None


def test_only_recorded_topics_are_deleted(registry: TopicRegistry) -> None:
    admin = FakeAdmin({"p-r-other": "foreign"})
    create(admin, registry, "p-r-1")
    assert delete(admin, registry) == ["p-r-1"]
    assert admin.topics == {"p-r-other": "foreign"}
    with pytest.raises(UsageError, match="no topics are recorded for the run r"):
        delete(admin, registry)


def test_a_topic_made_anew_by_somebody_is_left_alone(registry: TopicRegistry) -> None:
    admin = FakeAdmin()
    create(admin, registry, "a", "b")
    admin.topics["a"] = "made by somebody else"
    assert delete(admin, registry) == ["b"]
    assert "a" in admin.topics


def test_another_cluster_is_not_touched(registry: TopicRegistry) -> None:
    create(FakeAdmin(), registry, "a")
    other = FakeAdmin({"a": "id-1"}, cluster_id="cluster-b")
    for attempt in (lambda: delete(other, registry), lambda: create(other, registry, "c")):
        with pytest.raises(UsageError, match="made on the cluster cluster-a"):
            attempt()
    assert other.topics == {"a": "id-1"}


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": "espbench-topics/9"}'])
def test_a_damaged_record_is_named(registry: TopicRegistry, tmp_path: Path, content: str) -> None:
    path = tmp_path / "topics" / "r.json"
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"r\.json cannot be read"):
        registry.read("r")


@pytest.mark.parametrize("run", ["", "../x", "a/b", ".hidden", "a b", "ä", "x" * 200])
def test_a_run_must_be_able_to_be_a_name(run: str) -> None:
    with pytest.raises(UsageError, match="cannot be part of a topic's name"):
        check_run(run)
