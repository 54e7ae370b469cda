"""TLS certificates of masters that the user trusts (client spec, section 1).

File `certs.json`: `{"<url>": "<PEM chain>"}`. `DET_MASTER_CERT_FILE` (a path, or `noverify`) and
`DET_MASTER_CERT_NAME` (the name in the certificate, if it differs from the host) override it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from determined.transport import token_store

logger = logging.getLogger("determined.transport")


def verification(master: str) -> bool | str:
    """Return how to verify the certificate: True (default authorities), a file path, or False (no check)."""
    override = os.environ.get("DET_MASTER_CERT_FILE", "")
    if override.lower() == "noverify":
        return False
    if override and os.path.exists(override):
        return override
    if override:
        # As in 0.25. What is used instead accepts no more masters than the file could.
        logger.warning("DET_MASTER_CERT_FILE names %s, which does not exist; continuing without it", override)
    chain = _trusted().get(master) or _old_chain(master)
    return str(_as_file(chain)) if chain else True


def expected_name() -> str | None:
    """Return the name expected in the certificate, or None for the host in the address."""
    return os.environ.get("DET_MASTER_CERT_NAME") or None


def presented(master: str) -> tuple[str, str]:
    """Return the master's current certificate (PEM) and its SHA-256 fingerprint, without verifying it."""
    parts = urlsplit(master)
    pem = ssl.get_server_certificate((parts.hostname or "", parts.port or 443))
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()
    return pem, ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


def trust(master: str, pem: str) -> None:
    """Trust this certificate for this master from now on."""
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
    """Migrate the single `master.crt` that earlier clients used for all masters."""
    old = token_store.config_dir() / "master.crt"
    if not old.is_file():
        return None
    chain = old.read_text(encoding="ascii", errors="replace")
    trust(master, chain)
    old.unlink()
    return chain


def _as_file(chain: str) -> Path:
    """Write the chain to a file, because requests accepts certificates only as files."""
    name = hashlib.sha256(chain.encode()).hexdigest()[:16]
    path = token_store.config_dir() / "certs" / f"{name}.pem"
    if not path.exists():
        token_store.replace_private(path, chain)
    return path
