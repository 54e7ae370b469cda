"""Renews the certificate of a running local cluster before it expires."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from services.local.processes import log_line

if TYPE_CHECKING:
    from services.local.certificates import Certificates

POLL_S = 6 * 3600.0


async def renew_certificates(
    ensure_certificates: Callable[[], Certificates | None],
    reload_broker: Callable[[], None],
    poll_s: float = POLL_S,
) -> None:
    """Check the certificate periodically until cancelled.

    `ensure_certificates` creates a new certificate if the old one expires soon, and returns its location;
    None without TLS. All programs except the broker notice a new certificate by themselves.
    """
    current = b""
    while True:
        try:
            certificates = await asyncio.to_thread(ensure_certificates)
            now = certificates.certificate.read_bytes() if certificates is not None else b""
        except OSError as error:
            log_line(f"the certificate cannot be checked: {error}")
            now = current
        if current and now != current:
            reload_broker()
            log_line("there is a new certificate; the broker was asked to read it")
        current = now
        await asyncio.sleep(poll_s)
