"""A program for an init container: make the certificate by which a pod's Ray is known to the rest of its cluster.

Each pod writes the authority's certificate for itself, with the same name and key: that is all that the others compare.
Ray reads its certificate only when it starts, so it must be valid for as long as any pod may live.
"""

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_CURVE = ec.SECP256R1()
# The order of the curve's group: a key is a number below it.
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_VALID = timedelta(days=3650)
# Clocks of nodes differ.
_EARLIER = timedelta(days=1)
RESOLVER = Path("/etc/resolv.conf")


def authority_key(text: str) -> ec.EllipticCurvePrivateKey:
    """Return the authority's key from the hexadecimal number in the Secret."""
    return ec.derive_private_key(int(text, 16) % (_ORDER - 1) + 1, _CURVE)


def names_of(service: str, namespace: str, resolver: str) -> list[str]:
    """Return all names by which pods of the Kubernetes cluster may connect to a service.

    Args:
        service: Name of the head's service.
        namespace: Its namespace.
        resolver: The content of `/etc/resolv.conf`, which knows the domain of the Kubernetes cluster.
    """
    searched = [word for line in resolver.splitlines() if line.startswith("search ") for word in line.split()[1:]]
    domains = [domain for domain in searched if domain.startswith(f"{namespace}.svc.")]
    return [f"{service}{end}" for end in ("", f".{namespace}", f".{namespace}.svc", *(f".{each}" for each in domains))]


def certificates(
    authority: ec.EllipticCurvePrivateKey, names: list[str], ips: list[str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file: the authority's certificate, the pod's key and its certificate."""
    issuer, now = _named("workergroups"), datetime.now(UTC)
    key = ec.generate_private_key(_CURVE)
    addresses = [x509.IPAddress(ip_address(ip)) for ip in dict.fromkeys([*ips, "127.0.0.1", "::1"])]
    hosts = [x509.DNSName(name) for name in ["localhost", *names]]
    ca = _signed(authority, issuer, issuer, authority, now).add_extension(x509.BasicConstraints(True, 0), critical=True)
    own = _signed(authority, issuer, _named("ray"), key, now)
    own = own.add_extension(x509.SubjectAlternativeName([*hosts, *addresses]), critical=False)
    for name, builder in (("ca.crt", ca), ("tls.crt", own)):
        yield name, builder.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM)
    yield "tls.key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _signed(
    authority: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
) -> x509.CertificateBuilder:
    of_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    of_authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - _EARLIER).not_valid_after(now + _VALID)
    return builder.add_extension(of_key, critical=False).add_extension(of_authority, critical=False)


def main() -> None:
    """Write the files; any user of the pod's image may be Ray's."""
    service, namespace = sys.argv[1:]
    names = names_of(service, namespace, RESOLVER.read_text())
    ips = os.environ["POD_IPS"].split(",")
    for name, content in certificates(authority_key(os.environ["AUTHORITY_KEY"]), names, ips):
        Path(os.environ["DIRECTORY"], name).write_bytes(content)


if __name__ == "__main__":
    main()
