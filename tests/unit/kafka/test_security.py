"""Kafka's options in Java's names, as librdkafka wants to hear them."""

import pickle

import pytest

from espbench.config import Settings
from espbench.errors import ConfigError
from espbench.kafka.admin import KafkaAdmin
from espbench.kafka.security import FIXED, Servers, login, translated
from espbench.services.endpoints import bootstrap_servers

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_a_login_is_taken_out_of_javas_sentence() -> None:
    found = translated(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{SCRAM} required username="me" password="a\\"b;c=d e";',
        }
    )
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'a"b;c=d e',
    }


def test_stores_of_pem_have_other_names() -> None:
    found = translated(
        {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "/me.pem",
            "ssl.key.password": "secret",
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert found == {
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_what_has_nothing_to_do_with_being_let_in_is_sparks_alone() -> None:
    assert translated({"max.partition.fetch.bytes": "1"}) == {}


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"ssl.truststore.location": "/t.jks"}, "of the type JKS"),
        ({"ssl.truststore.location": "/t.p12", "ssl.truststore.type": "PKCS12"}, "type PKCS12"),
        ({"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"}, "Java"),
        ({"sasl.jaas.config": f'{PLAIN} required username="me";'}, "lacks username or password"),
    ],
)
def test_what_only_java_can_is_refused(options: dict[str, str], cause: str) -> None:
    with pytest.raises(ConfigError, match=cause) as refused:
        translated(options)
    assert "me" not in refused.value.line().split()


@pytest.mark.parametrize("name", FIXED)
def test_what_the_benchmark_decides_cannot_be_set(name: str) -> None:
    settings = Settings.model_validate(
        {"kafka": {"bootstrap_servers": "host:1", "options": {name: "x"}}}
    )
    with pytest.raises(ConfigError, match=name):
        bootstrap_servers(settings)


def test_an_address_shows_no_secret_and_survives_a_change_of_process() -> None:
    servers = Servers("host:1", {"sasl.password": "secret"})
    again = pickle.loads(pickle.dumps(servers))  # noqa: S301 - our own
    assert f"{again}" == str(again) == "host:1"
    assert "secret" not in repr(again)
    assert login(again) == {"sasl.password": "secret"}
    assert login("host:1") == {}


def test_a_client_that_cannot_be_made_says_why() -> None:
    with pytest.raises(ConfigError, match="no Kafka client"):
        KafkaAdmin(Servers("127.0.0.1:1", {"security.protocol": "nonsense"}))
