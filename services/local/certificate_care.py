"""Renews the certificate of a running local cluster before it expires."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from services.local.processes import tell

if TYPE_CHECKING:
    from services.local.certificates import Certificates

LOOK_S = 6 * 3600.0


async def keep_certificates(
    keep: Callable[[], Certificates | None], reload_broker: Callable[[], None], look_s: float = LOOK_S
) -> None:
    """Check the certificate periodically until cancelled.

    `keep` creates a new certificate if the old one expires soon, and returns its location; None without TLS.
    All programs except the broker notice a new certificate by themselves.
    """
    shown = b""
    while True:
        try:
            certificates = await asyncio.to_thread(keep)
            now = certificates.certificate.read_bytes() if certificates is not None else b""
        except OSError as error:
            tell(f"the certificate cannot be checked: {error}")
            now = shown
        if shown and now != shown:
            reload_broker()
            tell("there is a new certificate; the broker was asked to read it")
        shown = now
        await asyncio.sleep(look_s)
