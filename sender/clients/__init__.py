"""The contract of a Kafka client, and the clients by name."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from espbench.errors import UsageError
from sender.settings import ProducerSettings


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the records of one topic.

    `handed` and `failed` count by partition. A failed record was handed over and never
    acknowledged; the broker may still hold it. `retried` counts records that the client sent more
    than once, None where it does not tell.
    """

    handed: Mapping[int, int]
    failed: Mapping[int, int]
    retried: int | None


def merged(tallies: Sequence[Tally]) -> Tally:
    """The tallies of several processes as one."""
    handed: Counter[int] = Counter()
    failed: Counter[int] = Counter()
    for each in tallies:
        handed.update(each.handed)
        failed.update(each.failed)
    retried = [each.retried for each in tallies]
    known = [each for each in retried if each is not None]
    return Tally(handed, failed, sum(known) if len(known) == len(retried) else None)


class Client(Protocol):
    """A producer, as the sender sees it.

    One thread uses it. No method blocks longer than it says. After `connect` none raises for what
    the broker does: `failure` and `tally` tell that.
    """

    def connect(self, topics: Sequence[str], timeout_s: float) -> None:
        """Be ready to send to these topics at once; `ServiceError` where that fails."""
        ...

    def hand(self, topic: str, partition: int, values: list[bytes]) -> int:
        """Hand values over, in order; returns how many fitted into the queue (the first ones)."""
        ...

    def serve(self) -> None:
        """Take note of what was acknowledged and what failed; returns at once."""
        ...

    @property
    def failure(self) -> str | None:
        """Why the first record failed, or None as long as none did."""
        ...

    def finish(self, timeout_s: float, stop: Callable[[], bool]) -> None:
        """Wait until all is acknowledged, a record failed, `stop()` is true or time is up.

        What is then outstanding is given up and counts as failed.
        """
        ...

    def tally(self, topic: str) -> Tally:
        """What became of a topic's records; final after `finish`."""
        ...


def make_client(bootstrap_servers: str, settings: ProducerSettings) -> Client:
    """The client that the settings name, connecting in the background."""
    if settings.client == "confluent-kafka":
        from sender.clients.confluent import ConfluentClient  # noqa: PLC0415 - an extra

        return ConfluentClient(bootstrap_servers, settings)
    if settings.client == "kafka-python":
        from sender.clients.kafka_python import KafkaPythonClient  # noqa: PLC0415 - an extra

        return KafkaPythonClient(bootstrap_servers, settings)
    raise UsageError(
        f"there is no client {settings.client!r}", "use confluent-kafka or kafka-python"
    )
