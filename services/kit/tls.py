"""Certificates that this process shows, and authorities by which it knows others (docs/decisions/0035)."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

from services.kit.settings import BadSettings, ServiceSettings


def server_context(settings: ServiceSettings) -> ssl.SSLContext | None:
    """What connections are accepted with; None for plain ones. Raises `BadSettings`."""
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise BadSettings("STEADFAST_TLS_CERT and STEADFAST_TLS_KEY belong together: set both, or neither")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        # ssl.SSLError is one of these, and names no file.
        what = f"STEADFAST_TLS_CERT={certificate} and STEADFAST_TLS_KEY={key} cannot be used"
        raise BadSettings(f"{what}: {error.strerror or error}") from error
    return context


def client_context(ca: Path | str | None) -> ssl.SSLContext:
    """What others are known by: the authorities of this host, and those in a file. Raises `BadSettings`."""
    context = ssl.create_default_context()
    if ca is not None:
        try:
            context.load_verify_locations(ca)
        except OSError as error:
            raise BadSettings(f"STEADFAST_TLS_CA={ca} cannot be used: {error.strerror or error}") from error
    return context


def broker_options(url: str, ca: Path | None) -> dict[str, Any]:
    """What a NATS client is told beside its addresses, which are all `tls://` or all `nats://`.

    Raises `BadSettings`. The handshake comes first: a client that waits to be asked for it by the server can
    be kept from it by whoever stands between them.
    """
    schemes = {one.strip().partition("://")[0] for one in url.split(",")}
    if "tls" not in schemes:
        return {}
    if schemes != {"tls"}:
        raise BadSettings(f"STEADFAST_NATS_URL={url}: all addresses begin with tls://, or none does")
    logging.getLogger("asyncio").addFilter(_is_news)
    return {"tls": client_context(ca), "tls_handshake_first": True}


def _is_news(record: logging.LogRecord) -> bool:
    # asyncio warns whenever a TLS connection of nats-py's ends: nobody can do anything about that.
    return not str(record.msg).startswith("returning true from eof_received()")
