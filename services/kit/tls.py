"""Certificates that this process shows, and authorities by which it knows others (docs/decisions/0035)."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from services.kit.settings import BadSettings, ServiceSettings

log = structlog.get_logger()


class RenewedContext(ssl.SSLContext):
    """What TLS begins with, made anew as soon as one of its files is another one.

    Each handshake takes the newest that could be read; connections that are open go on with what they began
    with. Files that cannot be used, such as a certificate whose key is not there yet, are told once, and what
    was read before stays in use. Nothing but handshakes goes through to what was read: what is set here on
    the context itself means nothing.
    """

    def __init__(
        self, _: ssl._SSLMethod, files: tuple[Path, ...], make: Callable[[], ssl.SSLContext]
    ) -> None:
        """`make` reads the files; what it raises now is raised here. The protocol is taken by `__new__`."""
        self._files, self._make = files, make
        self._seen = self._told = self._stamps()
        """How the files were when `_newest` was made, and when it was told that they are of no use."""
        self._newest = make()

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Begin a handshake, as asyncio does."""
        return self._current().wrap_bio(*args, **options)

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        """Begin a handshake, as threads do."""
        return self._current().wrap_socket(*args, **options)

    def _current(self) -> ssl.SSLContext:
        # Looked at before it is read: what changes in between is seen at the next handshake.
        stamps = self._stamps()
        if stamps != self._seen:
            try:
                self._newest, self._seen = self._make(), stamps
                log.info("tls.renewed", files=[str(path) for path in self._files])
            except BadSettings as error:
                if stamps != self._told:
                    self._told = stamps
                    log.error("tls.not_renewed", error=str(error), now="what was read before is used")
        return self._newest

    def _stamps(self) -> tuple[object, ...]:
        return tuple(map(_stamp, self._files))


def _stamp(path: Path) -> tuple[int, ...]:
    """What differs once a file is written or replaced, also behind a link; empty for none."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def server_context(settings: ServiceSettings) -> ssl.SSLContext | None:
    """What connections are accepted with, renewed with its files; None: plainly. Raises `BadSettings`."""
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise BadSettings("STEADFAST_TLS_CERT and STEADFAST_TLS_KEY belong together: set both, or neither")
    shown, secret = certificate, key
    return RenewedContext(ssl.PROTOCOL_TLS_SERVER, (shown, secret), lambda: _showing(shown, secret))


def _showing(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        # ssl.SSLError is one of these, and names no file.
        what = f"STEADFAST_TLS_CERT={certificate} and STEADFAST_TLS_KEY={key} cannot be used"
        raise BadSettings(f"{what}: {error.strerror or error}") from error
    return context


def client_context(ca: Path | str | None) -> ssl.SSLContext:
    """What others are known by: the authorities of this host, and those in a file, renewed with it.

    Raises `BadSettings`.
    """
    if ca is None:
        return ssl.create_default_context()
    authorities = Path(ca)
    return RenewedContext(ssl.PROTOCOL_TLS_CLIENT, (authorities,), lambda: _knowing(authorities))


def _knowing(authorities: Path) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=authorities)
    except OSError as error:
        what = f"STEADFAST_TLS_CA={authorities} cannot be used"
        raise BadSettings(f"{what}: {error.strerror or error}") from error
    context.load_default_certs()
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
