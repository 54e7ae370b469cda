"""URL-safe base64 without padding, for use in tokens."""

from __future__ import annotations

import base64


def encode(data: bytes) -> str:
    """Encode bytes."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Decode text. Raises `ValueError` if it is malformed."""
    return base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_")
