"""A broker that asks who is there (SASL) over TLS: all of a run's Kafka clients are let in."""

import datetime as dt
import ipaddress
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from espbench.config import load_settings
from espbench.services.kafka import Kafka

DEADLINE_S = 240.0
USER, PASSWORD = "bench", 's3cret; "so" they say'


def jaas(password: str, more: str = "") -> str:
    quoted = password.replace('"', '\\"')
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return f'{module} required username="{USER}" password="{quoted}"{more};'


class GuardedKafka(Kafka):
    """The embedded broker with one door more, which has a lock."""

    port_count = 3
    certificate = Path()

    def _properties(self, ports: list[int]) -> str:
        if len(ports) < 3:  # to format the storage with
            return super()._properties(ports)
        lines = super()._properties(ports[:2]).splitlines()
        for place, line in enumerate(lines):
            name = line.partition("=")[0]
            if name in {"listeners", "advertised.listeners"}:
                lines[place] += f",SASL_SSL://127.0.0.1:{ports[2]}"
        quoted = PASSWORD.replace('"', '\\"')
        login = jaas(PASSWORD, f' user_{USER}="{quoted}"').replace("\\", "\\\\")
        doors = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL"
        return "\n".join(
            [
                *lines,
                f"listener.security.protocol.map={doors}",
                "sasl.enabled.mechanisms=PLAIN",
                f"listener.name.sasl_ssl.plain.sasl.jaas.config={login}",
                "ssl.keystore.type=PEM",
                f"ssl.keystore.location={self.certificate}",
                "",
            ]
        )

    def endpoint(self, ports: list[int]) -> dict[str, Any]:
        return {**super().endpoint(ports), "guarded": f"127.0.0.1:{ports[2]}"}


def make_certificate(place: Path) -> Path:
    """Key and certificate in one file; returns the certificate alone, for who trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "espbench test")])
    now = dt.datetime.now(dt.UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted = place / "ca.pem"
    trusted.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    GuardedKafka.certificate = place / "broker.pem"
    GuardedKafka.certificate.write_bytes(secret + trusted.read_bytes())
    return trusted


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the commands need to be let in."""
    root = tmp_path_factory.mktemp("guarded")
    shared = Path(__file__).parents[2] / ".espbench" / "jars"
    shared.mkdir(parents=True, exist_ok=True)
    (root / "jars").symlink_to(shared)
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas(PASSWORD),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(make_certificate(root)),
    }
    broker = GuardedKafka(load_settings(None, {"state_dir": root}))
    broker.start()
    try:
        endpoint = json.loads(broker.endpoint_file.read_text(encoding="utf-8"))
        yield {
            **os.environ,
            "ESPBENCH_STATE_DIR": str(root),
            "ESPBENCH_KAFKA__BOOTSTRAP_SERVERS": endpoint["guarded"],
            "ESPBENCH_KAFKA__OPTIONS": json.dumps(options),
        }
    finally:
        broker.stop()


def espbench(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "espbench", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
        env=environment,
    )


def test_a_query_from_topics_to_verdict(environment: dict[str, str], tmp_path: Path) -> None:
    stream = tmp_path / "sensor-1.csv"
    rows = [
        "\t".join(["ts", str(row), str(14_900 + row % 100), "2", "3", *["0"] * 51, "1"])
        for row in range(500)
    ]
    stream.write_text("\n".join(rows) + "\n", encoding="utf-8")
    sent, report = tmp_path / "sent.json", tmp_path / "query.json"
    for command in (
        ["topics", "create", "--run", "guarded", "--queries", "q3"],
        ["send", "--run", "guarded", f"--stream=1={stream}", "--rate", "200", "--duration", "2",
         "--out", str(sent)],
        ["query", "q3", "--run", "guarded", "--engine", "available-now", "--out", str(report)],
        ["capture", "--run", "guarded", "--query", "q3", "--out", str(tmp_path / "capture"),
         "--sender-report", str(sent)],
        ["topics", "delete", "--run", "guarded"],
    ):  # fmt: skip
        done = espbench(environment, *command)
        assert done.returncode in {0, 5}, done.stderr
    judged = espbench(environment, "validate", str(tmp_path / "capture"), "--json")
    verdict = json.loads(judged.stdout)
    assert verdict["correctness"] == "correct", verdict["witnesses"][:3]
    assert verdict["counts"]["matched"] > 0
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    assert not any(b"s3cret" in content for content in kept)


def test_who_has_the_wrong_password_is_told_in_one_line(environment: dict[str, str]) -> None:
    options = json.loads(environment["ESPBENCH_KAFKA__OPTIONS"])
    options["sasl.jaas.config"] = jaas("wrong one")
    wrong = {**environment, "ESPBENCH_KAFKA__OPTIONS": json.dumps(options)}
    refused = espbench(wrong, "topics", "create", "--run", "wrong", "--queries", "q3")
    assert refused.returncode == 3
    assert refused.stderr.count("\n") == 1
    assert "kafka.options" in refused.stderr
    assert "wrong one" not in refused.stderr
