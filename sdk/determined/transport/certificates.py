"""Which TLS certificate of a master this person trusts (client spec, section 1).

File `certs.json`: `{"<url>": "<PEM chain>"}`. `DET_MASTER_CERT_FILE` (a path, or `noverify`) and
`DET_MASTER_CERT_NAME` (the name in the certificate, where it differs from the host) override it.
"""

from __future__ import annotations

import hashlib
import json
import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from determined.transport import token_store


def verification(master: str) -> bool | str:
    """What to check the certificate against: True the usual authorities, a file's path, False nothing."""
    override = os.environ.get("DET_MASTER_CERT_FILE")
    if override:
        return False if override.lower() == "noverify" else override
    chain = _trusted().get(master) or _old_chain(master)
    return str(_as_file(chain)) if chain else True


def expected_name() -> str | None:
    """The name that must stand in the certificate; None for the host of the address."""
    return os.environ.get("DET_MASTER_CERT_NAME") or None


def presented(master: str) -> tuple[str, str]:
    """The certificate that the master shows just now, as PEM, and its SHA-256 fingerprint. Trusts nobody."""
    parts = urlsplit(master)
    pem = ssl.get_server_certificate((parts.hostname or "", parts.port or 443))
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()
    return pem, ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


def trust(master: str, pem: str) -> None:
    """Accept this certificate for this master from now on."""
    path = token_store.config_dir() / "certs.json"
    token_store.replace_private(path, json.dumps({**_trusted(), master: pem}, indent=2))


def _trusted() -> dict[str, str]:
    path = token_store.config_dir() / "certs.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); correct or remove it") from error
    return content if isinstance(content, dict) else {}


def _old_chain(master: str) -> str | None:
    """Earlier clients kept one `master.crt` for all masters: it is taken over once."""
    old = token_store.config_dir() / "master.crt"
    if not old.is_file():
        return None
    chain = old.read_text(encoding="ascii", errors="replace")
    trust(master, chain)
    old.unlink()
    return chain


def _as_file(chain: str) -> Path:
    """Requests takes certificates from files only."""
    name = hashlib.sha256(chain.encode()).hexdigest()[:16]
    path = token_store.config_dir() / "certs" / f"{name}.pem"
    if not path.exists():
        token_store.replace_private(path, chain)
    return path
