"""Commands that create something, with idempotency keys."""

from __future__ import annotations

import msgspec


class Once(msgspec.Struct, frozen=True):
    """A request with an `Idempotency-Key`. However often it is sent, the object is created once."""

    request_id: str
    """Derived from the user and the key; 32 hexadecimal digits."""
    key: str
    digest: str
    """Digest of the complete request, keyed with a gateway secret.

    Tells whether a request is a repetition.
    """


class Creation(msgspec.Struct, frozen=True, kw_only=True):
    """Base of commands that create something.

    With `once`, it is decided once, and repeated with that answer.
    """

    once: Once | None = None
