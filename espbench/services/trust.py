"""The machine's way to the network for Java: certificate authorities and proxies.

A Java from a wheel knows only the authorities of its maker. Where the machine trusts others (a
company's mirror), fetching would fail, although pip on the same machine succeeds.
"""

import os
import ssl
import warnings
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from espbench.errors import MissingExtra

_BUNDLE_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)


def machine_bundle() -> Path | None:
    """The file with the authorities that this machine trusts, if there is one."""
    named = [os.environ[name] for name in _BUNDLE_VARIABLES if os.environ.get(name)]
    default = ssl.get_default_verify_paths().cafile
    for place in (*named, *([default] if default else []), *_BUNDLES):
        if Path(place).is_file():
            return Path(place)
    return None


def trust_options(directory: Path) -> list[str]:
    """Java options that make it trust what the machine trusts; writes a trust store there."""
    bundle = machine_bundle()
    if bundle is None:
        return []
    try:
        from cryptography import x509  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            NoEncryption,
            pkcs12,
        )
    except ImportError as error:
        raise MissingExtra("cryptography", "embedded") from error
    with warnings.catch_warnings():
        # Old authorities with odd serial numbers are the machine's choice, not ours to judge.
        warnings.simplefilter("ignore")
        certificates = x509.load_pem_x509_certificates(bundle.read_bytes())
    entries = [
        pkcs12.PKCS12Certificate(certificate, str(number).encode())
        for number, certificate in enumerate(certificates)
    ]
    store = directory / "trust.p12"
    store.write_bytes(pkcs12.serialize_java_truststore(entries, NoEncryption()))
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=PKCS12"]


def proxy_options() -> list[str]:
    """Java options for the proxies that the environment names, as pip honours them."""
    proxies = getproxies()
    options = []
    for scheme in ("http", "https"):
        parts = urlsplit(proxies.get(scheme, ""))
        if parts.hostname:
            options.append(f"-D{scheme}.proxyHost={parts.hostname}")
            options.append(f"-D{scheme}.proxyPort={parts.port or 3128}")
    if options and proxies.get("no"):
        options.append(f"-Dhttp.nonProxyHosts={proxies['no'].replace(',', '|')}")
    return options
