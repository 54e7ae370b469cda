"""The cluster's own certificate authority, and the certificate of its broker and gateway."""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from services.kit.files import write_atomic
from services.kit.host_addresses import parse_address

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 397
"""The maximum that some clients accept."""
USES = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
"""Brokers use it both as servers and as clients of each other."""
RENEW_BEFORE_DAYS = 60
"""Remaining lifetime in days below which a start renews a certificate."""


@dataclass(frozen=True)
class Certificates:
    """The certificate files of one cluster."""

    authority: Path
    """The file given to clients, for `DET_MASTER_CERT_FILE`."""
    certificate: Path
    key: Path


def ensure_certificates(folder: Path, secrets: Path, host: str, now: datetime | None = None) -> Certificates:
    """Create what is missing or about to expire. The certificate names this host, loopback and `host`.

    `folder` is for public files, `secrets` for keys.
    """
    now = now or datetime.now(UTC)
    certificates = Certificates(folder / "ca.pem", folder / "server.pem", secrets / "server.key")
    authority_key = secrets / "ca.key"
    if not (authority_key.exists() and certificates.authority.exists()):
        _make_authority(certificates.authority, authority_key, now)
    names = names_of(host)
    if not (
        certificates.key.exists() and _is_valid(certificates.certificate, certificates.authority, names, now)
    ):
        _make_certificate(certificates, authority_key, names, now)
    return certificates


def names_of(host: str) -> list[str]:
    """Return the names and addresses by which a cluster listening at `host` is reached."""
    names = [
        "localhost",
        "127.0.0.1",
        "::1",
        socket.gethostname(),
        socket.getfqdn(),
        os.uname().nodename,
        host,
    ]
    return sorted({name for name in names if name not in ("", "0.0.0.0", "::")})  # noqa: S104 - compared


def _make_authority(certificate: Path, key_file: Path, now: datetime) -> None:
    key = generate_private_key(SECP256R1())
    name = _common_name(f"Steadfast {os.uname().nodename}")
    made = (
        _certificate_builder(name, name, key, now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_signing_usage(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )
    # The key first: a certificate without its key would look complete at the next start.
    _write(key_file, _pem(key), 0o600)
    _write(certificate, made.public_bytes(Encoding.PEM), 0o644)


def _make_certificate(
    certificates: Certificates, authority_key: Path, names: list[str], now: datetime
) -> None:
    authority = x509.load_pem_x509_certificate(certificates.authority.read_bytes())
    signer = load_pem_private_key(authority_key.read_bytes(), None)
    if not isinstance(signer, EllipticCurvePrivateKey):
        raise TypeError(f"{authority_key} is not an elliptic curve key")
    key = generate_private_key(SECP256R1())
    alternatives = [_alternative(name) for name in names]
    from_authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    made = (
        _certificate_builder(_common_name("Steadfast"), authority.subject, key, now, CERTIFICATE_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.ExtendedKeyUsage(USES), critical=False)
        .add_extension(from_authority, critical=False)
        .sign(signer, SHA256())
    )
    _write(certificates.key, _pem(key), 0o600)
    _write(certificates.certificate, made.public_bytes(Encoding.PEM), 0o644)


def _is_valid(certificate: Path, authority: Path, names: list[str], now: datetime) -> bool:
    """Whether the certificate is from this authority, for these names, and not about to expire."""
    try:
        existing = x509.load_pem_x509_certificate(certificate.read_bytes())
        existing.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.read_bytes()))
        has = existing.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:
        # Missing, damaged, or from another authority: create a new one.
        return False
    lasts = existing.not_valid_after_utc > now + timedelta(days=RENEW_BEFORE_DAYS)
    return lasts and set(has) == {_alternative(name) for name in names}


def _certificate_builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    begun = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
    begun = begun.public_key(key.public_key()).serial_number(x509.random_serial_number())
    # Allow for small clock differences.
    return begun.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=days))


def _signing_usage() -> x509.KeyUsage:
    others = "digital_signature content_commitment key_encipherment data_encipherment key_agreement"
    others += " encipher_only decipher_only"
    return x509.KeyUsage(key_cert_sign=True, crl_sign=True, **dict.fromkeys(others.split(), False))


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _alternative(name: str) -> x509.GeneralName:
    address = parse_address(name)
    return x509.IPAddress(ipaddress.ip_address(str(address))) if address is not None else x509.DNSName(name)


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, content)
    path.chmod(mode)
