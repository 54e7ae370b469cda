"""The certificates this process presents, and the authorities it trusts (docs/decisions/0035)."""

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
    """A TLS context that is rebuilt when one of its files changes.

    Each handshake uses the newest files that could be loaded; open connections keep what they started with.
    Unusable files, such as a certificate whose key has not arrived yet, are logged once, and the previous
    files stay in use. Only handshakes are forwarded to the loaded context, so changing other settings on this
    object has no effect.
    """

    def __init__(
        self, _: ssl._SSLMethod, files: tuple[Path, ...], make: Callable[[], ssl.SSLContext]
    ) -> None:
        """`make` loads the files; its exceptions are raised here. `__new__` consumes the protocol."""
        self._files, self._make = files, make
        self._loaded_stamps = self._reported_stamps = self._stamps()
        """State of the files when `_newest` was built, and when they were last reported as unusable."""
        self._newest = make()

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Start a handshake, as asyncio does."""
        return self._current().wrap_bio(*args, **options)

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        """Start a handshake, as threads do."""
        return self._current().wrap_socket(*args, **options)

    def _current(self) -> ssl.SSLContext:
        # Stat before reading: a change in between is then noticed at the next handshake.
        stamps = self._stamps()
        if stamps != self._loaded_stamps:
            try:
                self._newest, self._loaded_stamps = self._make(), stamps
                log.info("tls.renewed", files=[str(path) for path in self._files])
            except BadSettings as error:
                if stamps != self._reported_stamps:
                    self._reported_stamps = stamps
                    log.error("tls.not_renewed", error=str(error), now="the previous files stay in use")
        return self._newest

    def _stamps(self) -> tuple[object, ...]:
        return tuple(map(_stamp, self._files))


def _stamp(path: Path) -> tuple[int, ...]:
    """Return values that change when a file is written or replaced, also behind a link; empty if missing."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def server_context(settings: ServiceSettings) -> ssl.SSLContext | None:
    """Return the context for accepting TLS connections, or None for plain ones. Raises `BadSettings`."""
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise BadSettings("STEADFAST_TLS_CERT and STEADFAST_TLS_KEY belong together: set both, or neither")
    shown, secret = certificate, key
    return RenewedContext(
        ssl.PROTOCOL_TLS_SERVER, (shown, secret), lambda: _load_server_context(shown, secret)
    )


def _load_server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        # ssl.SSLError is an OSError, but names no file.
        what = f"STEADFAST_TLS_CERT={certificate} and STEADFAST_TLS_KEY={key} cannot be used"
        raise BadSettings(f"{what}: {error.strerror or error}") from error
    return context


def client_context(ca: Path | str | None) -> ssl.SSLContext:
    """Return a context that trusts this host's authorities and those in a file, reloaded when it changes.

    Raises `BadSettings`.
    """
    if ca is None:
        return ssl.create_default_context()
    authorities = Path(ca)
    return RenewedContext(ssl.PROTOCOL_TLS_CLIENT, (authorities,), lambda: _load_client_context(authorities))


def _load_client_context(authorities: Path) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=authorities)
    except OSError as error:
        what = f"STEADFAST_TLS_CA={authorities} cannot be used"
        raise BadSettings(f"{what}: {error.strerror or error}") from error
    # `cafile` replaces the system's authorities, and the S3 store may have a public certificate.
    context.load_default_certs()
    return context


def broker_options(url: str, ca: Path | None) -> dict[str, Any]:
    """Return NATS client options for addresses that are all `tls://` or all `nats://`.

    Raises `BadSettings`. The TLS handshake comes first: if the client waited for the server to request TLS,
    an attacker in between could suppress the request.
    """
    schemes = {address.strip().partition("://")[0] for address in url.split(",")}
    if "tls" not in schemes:
        return {}
    if schemes != {"tls"}:
        raise BadSettings(f"STEADFAST_NATS_URL={url}: all addresses begin with tls://, or none does")
    logging.getLogger("asyncio").addFilter(_is_relevant)
    return {"tls": client_context(ca), "tls_handshake_first": True}


def _is_relevant(record: logging.LogRecord) -> bool:
    # asyncio warns whenever a TLS connection of nats-py ends, which is harmless.
    return not str(record.msg).startswith("returning true from eof_received()")
