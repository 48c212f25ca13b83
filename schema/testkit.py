"""For tests: certificates of one's own, and TLS before a PostgreSQL that was built without it."""

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from select import select

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


# What a PostgreSQL client asks before it speaks TLS: a length of 8, and this code.
_SSL_REQUEST = struct.pack("!ii", 8, 80_877_103)


@contextmanager
def tls_before_postgresql(port: int, certificate: Path, key: Path) -> Iterator[int]:
    """A free port of 127.0.0.1 where the server at `port` speaks TLS to those who ask for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, context, port), daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            # Wakes the thread that accepts.
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, context, port), daemon=True).start()


def _serve(client: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError), ExitStack() as cleanup:
        cleanup.enter_context(client)
        server = cleanup.enter_context(socket.create_connection(("127.0.0.1", port)))
        begin = client.recv(len(_SSL_REQUEST), socket.MSG_WAITALL)
        if begin == _SSL_REQUEST:
            client.sendall(b"S")
            client = cleanup.enter_context(context.wrap_socket(client, server_side=True))
        else:
            server.sendall(begin)
        while _carry(client, server):
            pass


def _carry(client: socket.socket, server: socket.socket) -> bool:
    """Hand on what either says; False once one has ended."""
    decrypted = isinstance(client, ssl.SSLSocket) and client.pending() > 0
    ready = [client] if decrypted else select([client, server], [], [])[0]
    for source in ready:
        block = source.recv(1 << 16)
        if not block:
            return False
        (server if source is client else client).sendall(block)
    return True


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
