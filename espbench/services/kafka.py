"""The embedded Kafka broker: KRaft, from its jars; alone, or one of several."""

import base64
import hashlib
import logging
import os
import socket
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from espbench.errors import ConfigError, MissingExtra, ServiceError
from espbench.paths import write_atomically
from espbench.services import jars
from espbench.services.java import find_java
from espbench.services.service import Service, port_is_free

_LOG4J = """\
Configuration:
  status: warn
  Appenders:
    Console:
      name: out
      PatternLayout:
        pattern: "%d{yyyy-MM-dd'T'HH:mm:ss.SSS} %p %c{1} %m%n"
  Loggers:
    Root:
      level: info
      AppenderRef:
        ref: out
"""
# Shown by `espbench status`: what a reader of results wants to know of the broker.
_SHOWN = ("log.message.timestamp.type", "log.dirs", "num.io.threads", "log.flush.interval.messages")


class Kafka(Service):
    """A broker and its controller in one process; `kafka.voters` makes it one of several."""

    name = "kafka"
    port_count = 2

    def fetch(self) -> None:
        """The jars."""
        jars.class_path(self.settings, "kafka")

    def prepare(self) -> None:
        """Format the storage once; a format that was cut short is done again."""
        voters = self._voters()
        if (meta := self.data / "meta.properties").exists():
            self._check_membership(meta, voters)
            return
        settings_file = self.home / "format.properties"
        write_atomically(settings_file, self._properties([9092, 9093]))
        cluster_id = _cluster_id(voters) if voters else _identifier(uuid.uuid4().bytes)
        command = [
            *self._java("256m"),
            *("kafka.tools.StorageTool", "format", "--ignore-formatted"),
            # One word: an id may begin with a dash.
            *(f"--cluster-id={cluster_id}", "--config", str(settings_file)),
        ]
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, env=dict(self.environment())
        )
        if answer.returncode != 0:
            words = answer.stdout + answer.stderr
            self.log.write_text(words, encoding="utf-8")
            lines = [line for line in words.splitlines() if "xception" in line or "rror" in line]
            raise ServiceError(
                f"Kafka's storage cannot be formatted: {(lines or ['no reason given'])[0]}",
                f"see {self.log}",
            )

    def command(self, ports: list[int]) -> list[str]:
        """The broker on its settings file."""
        path = self.home / "server.properties"
        write_atomically(path, self._properties(ports))
        return [*self._java(f"{self.settings.kafka.heap_mb}m"), "kafka.Kafka", str(path)]

    def environment(self) -> Mapping[str, str]:
        """The environment with the Java that was found."""
        return find_java(self.settings).environment()

    def fixed_port(self) -> int:
        """The configured port."""
        return self.settings.kafka.port

    def choose_ports(self) -> list[int]:
        """A member's controller listens where the others expect it."""
        ports = super().choose_ports()
        if (voters := self._voters()) is not None:
            expected = _members(voters)[self.settings.kafka.node_id]
            ports[1] = int(expected.rpartition(":")[2])
            if not port_is_free(ports[1], self.host):
                raise ServiceError(
                    f"kafka cannot start: port {ports[1]} of {self.host} is taken",
                    "end the program that uses it, or name another one in kafka.voters",
                )
        return ports

    def endpoint(self, ports: list[int]) -> dict[str, Any]:
        """The bootstrap address."""
        return {"bootstrap_servers": f"{self.host}:{ports[0]}"}

    def address(self, endpoint: dict[str, Any]) -> str:
        """The bootstrap address."""
        return str(endpoint["bootstrap_servers"])

    def ask(self, endpoint: dict[str, Any]) -> dict[str, str]:
        """Describe the broker through the ordinary protocol."""
        host, port = endpoint["bootstrap_servers"].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=2):
            pass
        try:
            from confluent_kafka.admin import (  # type: ignore[attr-defined]  # noqa: PLC0415
                AdminClient,
                ConfigResource,  # exported by the library without saying so to type checkers
            )
        except ImportError as error:
            raise MissingExtra("confluent-kafka", "kafka") from error
        silent = logging.getLogger("espbench.librdkafka")
        silent.addHandler(logging.NullHandler())
        silent.propagate = False
        client = AdminClient(
            {"bootstrap.servers": endpoint["bootstrap_servers"], "socket.timeout.ms": 5000},
            logger=silent,
        )
        metadata = client.list_topics(timeout=5)
        # Several brokers: the one that was asked knows of itself last.
        node = self.settings.kafka.node_id if self.settings.kafka.voters else 1
        if node not in metadata.brokers:
            raise ServiceError(f"broker {node} has not joined the others", f"see {self.log}")
        broker = ConfigResource(ConfigResource.Type.BROKER, str(node))
        found = client.describe_configs([broker], request_timeout=5)[broker].result(timeout=6)
        shown = {key: found[key].value for key in _SHOWN if key in found}
        return shown | {"node.id": str(node), "brokers": str(len(metadata.brokers))}

    def _voters(self) -> str | None:
        """The members where there are several; raises where this one is not among them."""
        voters, node = self.settings.kafka.voters, self.settings.kafka.node_id
        if voters is not None and node not in _members(voters):
            raise ConfigError(
                f"kafka.node_id = {node} is not among kafka.voters",
                "number the brokers 1, 2, …, and name each in kafka.voters",
            )
        return voters

    def _check_membership(self, meta: Path, voters: str | None) -> None:
        """A member of another cluster would wait for the others for ever."""
        if voters is None:
            return
        lines = meta.read_text(encoding="utf-8").splitlines()
        if {f"cluster.id={_cluster_id(voters)}", f"node.id={self.settings.kafka.node_id}"} - set(
            lines
        ):
            raise ServiceError(
                f"the data of {self.home} belongs to another cluster of brokers",
                f"remove {self.data}, with all topics in it",
            )

    def _java(self, heap: str) -> list[str]:
        log4j = self.home / "log4j2.yaml"
        if not log4j.exists():
            write_atomically(log4j, _LOG4J)
        path = os.pathsep.join(str(jar) for jar in jars.class_path(self.settings, "kafka"))
        java = find_java(self.settings)
        return [
            str(java.executable),
            *(f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
            *("-Djava.awt.headless=true", f"-Dlog4j2.configurationFile={log4j}"),
            *("-cp", path),
        ]

    def _properties(self, ports: list[int]) -> str:
        broker, controller = ports
        voters = self._voters() or f"1@{self.host}:{controller}"
        replicas = str(min(3, len(_members(voters))))
        in_sync = str(min(2, len(_members(voters))))
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(self.settings.kafka.node_id if self.settings.kafka.voters else 1),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{self.host}:{broker},CONTROLLER://{self.host}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.host}:{broker}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            # The broker's clock is the only one that all parts see.
            "log.message.timestamp.type": "LogAppendTime",
            # A topic exists because a run made it, never because somebody asked for it.
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": in_sync,
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            # Deleted topics give their space back soon.
            "file.delete.delay.ms": "1000",
            "log.retention.ms": "-1",
        }
        return "".join(f"{key}={_escape(value)}\n" for key, value in settings.items())


def _members(voters: str) -> dict[int, str]:
    """Number to `host:port`."""
    pairs = (each.split("@", 1) for each in voters.split(","))
    return {int(number): address for number, address in pairs}


def _cluster_id(voters: str) -> str:
    """Members format for themselves, so they must come to the same id."""
    return _identifier(hashlib.sha256(voters.encode()).digest()[:16])


def _identifier(sixteen: bytes) -> str:
    """Sixteen bytes as Kafka writes them."""
    return base64.urlsafe_b64encode(sixteen).rstrip(b"=").decode()


def _escape(value: str) -> str:
    """Java reads such files as Latin-1; anything else is written as UTF-16 escapes."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = [int.from_bytes(units[place : place + 2]) for place in range(0, len(units), 2)]
    return "".join(chr(code) if 0x20 <= code < 0x7F else f"\\u{code:04x}" for code in codes)
