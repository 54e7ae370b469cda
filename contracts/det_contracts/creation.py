"""Commands that make something, once for each request that names itself."""

from __future__ import annotations

import msgspec


class Once(msgspec.Struct, frozen=True):
    """A request with an `Idempotency-Key`: what it asks for is made once, however often it comes."""

    request_id: str
    """Made of who asks and of the key; 32 hexadecimal digits."""
    key: str
    digest: str
    """Of all that was asked for, with a secret of the gateway: tells whether it is the same request."""


class Creation(msgspec.Struct, frozen=True, kw_only=True):
    """Base of commands that make something; one with `once` is ruled on once, and answered so ever after."""

    once: Once | None = None
