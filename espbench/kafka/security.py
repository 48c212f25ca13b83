"""How to be let in by a broker: Kafka's options in Java's names, for clients that are not Java.

`kafka.options` of the configuration speaks to Spark, whose client is Kafka's own. Topics, sender
and capture use librdkafka, which has other names for the same things; what it cannot is refused.
"""

import re
from collections.abc import Mapping
from typing import Self

from espbench.errors import ConfigError

SAME = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.kerberos.service.name",
    "ssl.key.password",
)
# What is a store's type, and what is then called how.
_STORES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ssl.truststore": {"PEM": ("ssl.ca.location",)},
    "ssl.keystore": {
        "PEM": ("ssl.certificate.location", "ssl.key.location"),
        "PKCS12": ("ssl.keystore.location",),
    },
}
_INLINE = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_LOGIN_MODULE = re.compile(r"\s*(?:\w+\.)*(?:Plain|Scram)LoginModule\s+required\b")
_LOGIN = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")
# What Spark's source and sink decide themselves, or the benchmark's definition does.
FIXED: Mapping[str, str] = {
    "bootstrap.servers": "give it as kafka.bootstrap_servers",
    "acks": "answers count once they are durable (all)",
    "auto.offset.reset": "a query begins at the first record, or at its checkpoint",
    "enable.auto.commit": "Spark keeps offsets in its checkpoint",
    "group.id": "Spark makes a group for every query",
    "interceptor.classes": "Spark refuses them",
    "key.deserializer": "keys are bytes",
    "key.serializer": "keys are bytes",
    "transactional.id": "Spark's sink writes without transactions",
    "value.deserializer": "values are bytes",
    "value.serializer": "values are bytes",
}


class Servers(str):
    """Where Kafka is, `host:port,…`; `client` is what librdkafka must be told to be let in.

    As text it is the address alone, so that no secret is shown with it.
    """

    __slots__ = ("client",)
    client: Mapping[str, str]

    def __new__(cls, address: str, client: Mapping[str, str] | None = None) -> Self:
        """Copies `client`."""
        made = super().__new__(cls, address)
        made.client = dict(client or {})
        return made

    def __getnewargs__(self) -> tuple[str, Mapping[str, str]]:  # type: ignore[override]
        return str(self), self.client


def login(bootstrap_servers: str) -> dict[str, str]:
    """What a client at this address must be told."""
    return dict(bootstrap_servers.client) if isinstance(bootstrap_servers, Servers) else {}


def check_fixed(options: Mapping[str, str]) -> None:
    """Raise `ConfigError` for an option that is not the user's to set."""
    for name in options:
        if name in FIXED:
            raise ConfigError(f"kafka.options.{name} cannot be set: {FIXED[name]}", "leave it out")


def translated(options: Mapping[str, str]) -> dict[str, str]:
    """The options that let a client in, in librdkafka's names; all others are Spark's alone.

    Raises `ConfigError` for what librdkafka has no way to do.
    """
    found = {name: options[name] for name in SAME if name in options}
    if "ssl.endpoint.identification.algorithm" in options:
        # Java says nothing where it does not look.
        algorithm = options["ssl.endpoint.identification.algorithm"] or "none"
        found["ssl.endpoint.identification.algorithm"] = algorithm
    if "sasl.jaas.config" in options:
        found |= _of_jaas(options["sasl.jaas.config"])
    for store, kinds in _STORES.items():
        found |= _of_store(options, store, kinds)
    for name, ours in _INLINE.items():
        if name in options:
            found[ours] = options[name]
    return found


def _of_jaas(text: str) -> dict[str, str]:
    if not _LOGIN_MODULE.match(text):
        raise ConfigError(
            "kafka.options.sasl.jaas.config has a login module that only Java knows",
            "use PlainLoginModule or ScramLoginModule",
        )
    given = {
        name: re.sub(r"\\(.)", r"\1", double) if double else single
        for name, double, single in _LOGIN.findall(text)
    }
    if len(given) < 2:
        raise ConfigError(
            "kafka.options.sasl.jaas.config lacks username or password",
            '…LoginModule required username="…" password="…";',
        )
    return {f"sasl.{name}": value for name, value in given.items()}


def _of_store(
    options: Mapping[str, str], store: str, kinds: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    location = options.get(f"{store}.location")
    if location is None:
        return {}
    kind = options.get(f"{store}.type", "JKS").upper()
    if kind not in kinds:
        raise ConfigError(
            f"kafka.options.{store}.location is of the type {kind}, which only Java reads",
            f"use a PEM file and {store}.type: PEM",
        )
    found = dict.fromkeys(kinds[kind], location)
    if kind == "PKCS12" and f"{store}.password" in options:
        found[f"{store}.password"] = options[f"{store}.password"]
    return found
