"""What is asked of a broker outside of sending and reading: topics and their offsets."""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from espbench.errors import ConfigError, ServiceError, UsageError
from espbench.kafka import client, spread
from espbench.kafka.security import login

TIMEOUT_S = 15.0
# A broker that is there answers at once; one that is not should be missed soon.
CONNECT_TIMEOUT_S = 5.0
_POLL_S = 0.05
# What a broker says of a partition while leadership is on its way to it: wait, then ask again.
_PASSING = frozenset(
    {
        "NOT_LEADER_FOR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_OR_PART",
        "UNKNOWN_LEADER_EPOCH",
        "FENCED_LEADER_EPOCH",
    }
)

# Set on the topic itself, whatever the broker's defaults are: the broker's clock is the only one
# that system under test and validator share, and nothing may expire while a run still needs it.
TOPIC_CONFIG: Mapping[str, str] = {
    "message.timestamp.type": "LogAppendTime",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
}


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: the id of its leader (None while it has none)."""

    partition: int
    leader: int | None


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the cluster describes it; `topic_id` is Kafka's own, new with every creation."""

    name: str
    topic_id: str
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets that a partition holds: `begin` inclusive, `end` exclusive."""

    partition: int
    begin: int
    end: int

    @property
    def count(self) -> int:
        """How many offsets lie in the range."""
        return self.end - self.begin


class KafkaAdmin:
    """A connection for administration.

    Every method raises `ServiceError` when the broker does not answer within `timeout_s`, or
    refuses for a reason that is not named in the method's contract.
    """

    def __init__(self, bootstrap_servers: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._library = client.library()
        self.bootstrap_servers = bootstrap_servers
        self._timeout_s = timeout_s
        settings = {
            **login(bootstrap_servers),
            "bootstrap.servers": str(bootstrap_servers),
            "client.id": "espbench-admin",
        }
        try:
            self._admin = self._library.admin.AdminClient(settings, logger=client.logger())
        except self._library.KafkaException as error:
            raise ConfigError(
                f"no Kafka client can be made like this: {client.reason(error)}",
                "correct kafka.options",
            ) from error
        metadata = self._metadata(min(timeout_s, CONNECT_TIMEOUT_S))
        self.cluster_id = str(metadata.cluster_id)

    def names(self) -> frozenset[str]:
        """The names of all topics of the cluster."""
        return frozenset(self._metadata(self._timeout_s).topics)

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        """Name to description, of those among `names` that exist."""
        found: dict[str, Topic] = {}
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return found
        collection = self._library.TopicCollection(wanted)
        futures = self._admin.describe_topics(collection, request_timeout=self._timeout_s)
        for name, future in futures.items():
            try:
                found[name] = _described(self._result(future))
            except _Refused as refused:
                if refused.name != "UNKNOWN_TOPIC_OR_PART":
                    raise refused.as_error(f"cannot describe the topic {name}") from refused
        return found

    def create(self, names: Iterable[str], *, partitions: int, replication_factor: int) -> None:
        """Make new topics, stamped by LogAppendTime and kept for ever; all of them or none.

        Returns once every partition has a leader that answers for it. Raises `UsageError` where a
        topic already exists: it is never reused, and nothing is left behind.
        """
        wanted = list(dict.fromkeys(names))
        existing = sorted(self.names().intersection(wanted))
        if existing:
            raise topic_exists(existing)
        uncertain = list(wanted)
        try:
            self._create(wanted, uncertain, partitions, replication_factor)
            self._wait_for_leaders(wanted)
        except BaseException:
            # Also after Ctrl-C. Topics that another program made meanwhile are not in the list.
            with suppress(ServiceError):  # the first error is the one to show
                self.delete(uncertain)
            raise

    def delete(self, names: Iterable[str]) -> list[str]:
        """Delete these topics and wait until they are gone; returns those that existed."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return []
        deleted = []
        futures = self._admin.delete_topics(
            wanted, operation_timeout=self._timeout_s, request_timeout=self._timeout_s
        )
        for name, future in futures.items():
            try:
                self._result(future)
                deleted.append(name)
            except _Refused as refused:
                if refused.name != "UNKNOWN_TOPIC_OR_PART":
                    raise refused.as_error(f"cannot delete the topic {name}") from refused
        deadline = time.monotonic() + self._timeout_s
        while self.names().intersection(deleted):
            if time.monotonic() > deadline:
                raise ServiceError(
                    f"Kafka still shows deleted topics after {self._timeout_s:.0f} s",
                    "look into the broker's log",
                )
            time.sleep(_POLL_S)
        return deleted

    def offsets(self, name: str) -> list[OffsetRange]:
        """The offsets of every partition of a topic, in order of the partitions.

        Raises `UsageError` where there is no such topic.
        """
        topic = self.describe([name]).get(name)
        if topic is None:
            raise no_topic(name)
        spec = self._library.admin.OffsetSpec
        begin = self._list_offsets(topic, spec.earliest())
        end = self._list_offsets(topic, spec.latest())
        return [
            OffsetRange(each.partition, begin[each.partition], end[each.partition])
            for each in topic.partitions
        ]

    def timestamp_type(self, name: str) -> str:
        """`LogAppendTime` or `CreateTime`, as it is set for this topic."""
        admin = self._library.admin
        resource = admin.ConfigResource(admin.ResourceType.TOPIC, name)
        futures = self._admin.describe_configs([resource], request_timeout=self._timeout_s)
        try:
            config = self._result(futures[resource])
        except _Refused as refused:
            raise refused.as_error(f"cannot read the settings of the topic {name}") from refused
        return str(config["message.timestamp.type"].value)

    def _create(
        self, wanted: list[str], uncertain: list[str], partitions: int, replication_factor: int
    ) -> None:
        brokers = sorted(self._metadata(self._timeout_s).brokers)
        places = spread.assignments(len(wanted), partitions, replication_factor, brokers)
        new_topics = [
            self._library.admin.NewTopic(
                name,
                partitions,
                config=dict(TOPIC_CONFIG),
                **spread.placed(replication_factor, each),
            )
            for name, each in zip(wanted, places, strict=True)
        ]
        futures = self._admin.create_topics(
            new_topics, operation_timeout=self._timeout_s, request_timeout=self._timeout_s
        )
        first: Exception | None = None
        for name, future in futures.items():
            try:
                self._result(future)
            except _Refused as refused:
                error: Exception = refused.as_error(f"cannot make the topic {name}")
                if refused.name == "TOPIC_ALREADY_EXISTS":
                    uncertain.remove(name)
                    error = topic_exists([name])
                first = first or error
        if first:
            raise first

    def _wait_for_leaders(self, wanted: list[str]) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            found = self.describe(wanted)
            if len(found) == len(wanted) and all(
                partition.leader is not None
                for topic in found.values()
                for partition in topic.partitions
            ):
                # The controller names leaders before they know of it themselves.
                for topic in found.values():
                    self._list_offsets(topic, self._library.admin.OffsetSpec.latest())
                return
            if time.monotonic() > deadline:
                raise ServiceError(
                    f"new topics have no leader after {self._timeout_s:.0f} s",
                    "look into the broker's log",
                )
            time.sleep(_POLL_S)

    def _list_offsets(self, topic: Topic, spec: Any) -> dict[int, int]:
        request = {
            self._library.TopicPartition(topic.name, each.partition): spec
            for each in topic.partitions
        }
        deadline = time.monotonic() + self._timeout_s
        while True:
            futures = self._admin.list_offsets(request, request_timeout=self._timeout_s)
            try:
                return {
                    key.partition: int(self._result(future).offset)
                    for key, future in futures.items()
                }
            except _Refused as refused:
                if refused.name not in _PASSING or time.monotonic() > deadline:
                    raise refused.as_error(f"cannot read the offsets of {topic.name}") from refused
            time.sleep(_POLL_S)

    def _metadata(self, timeout_s: float) -> Any:
        try:
            return self._admin.list_topics(timeout=timeout_s)
        except self._library.KafkaException as error:
            raise client.unreachable(self.bootstrap_servers, client.reason(error)) from error

    def _result(self, future: Any) -> Any:
        try:
            return future.result(timeout=self._timeout_s + 5)
        except self._library.KafkaException as error:
            kafka_error = error.args[0]
            if kafka_error.name().startswith("_") or kafka_error.name() == "REQUEST_TIMED_OUT":
                raise client.unreachable(self.bootstrap_servers, client.reason(error)) from error
            raise _Refused(kafka_error.name(), client.reason(error)) from error
        except TimeoutError as error:
            raise client.unreachable(self.bootstrap_servers, "no answer in time") from error


class _Refused(Exception):
    """An answer of the broker that is not "done"; the methods above turn it into errors."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name

    def as_error(self, what: str) -> ServiceError:
        return ServiceError(f"{what}: {self}", "look into the broker's settings and log")


def no_topic(name: str) -> UsageError:
    """The error for a topic that is not there."""
    return UsageError(
        f"there is no topic {name}", "make it with `espbench topics create`, or check --run"
    )


def topic_exists(names: list[str]) -> UsageError:
    """The error for topics that are already there."""
    return UsageError(
        f"already exists: topic {', '.join(names)}; a topic is never used twice",
        "choose another --run, or remove it with `espbench topics delete`",
    )


def _described(description: Any) -> Topic:
    return Topic(
        name=description.name,
        topic_id=str(description.topic_id),
        partitions=tuple(
            Partition(each.id, each.leader.id if each.leader and each.leader.id >= 0 else None)
            for each in sorted(description.partitions, key=lambda each: each.id)
        ),
    )
