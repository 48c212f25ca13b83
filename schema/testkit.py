"""For tests: a certificate authority of one's own, and certificates for servers on loopback."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_VALID = timedelta(days=1)


class Authority:
    """Signs certificates that end tomorrow."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._certificate = (
            _begun(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def write(self, path: Path) -> None:
        """The authority's own certificate: what a client is given to check others."""
        path.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, certificate: Path, key: Path, address: str = "127.0.0.1") -> None:
        """A certificate for the server at this IP address, and its key, readable by us alone."""
        own = ec.generate_private_key(ec.SECP256R1())
        alternative = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        issued = (
            _begun(_named(address), self._name, own.public_key())
            .add_extension(alternative, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        certificate.write_bytes(issued.public_bytes(serialization.Encoding.PEM))
        key.touch(mode=0o600)
        key.write_bytes(
            own.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _VALID)
        .not_valid_after(now + _VALID)
    )
