"""Bytes as text that may stand in a token: base64 in its URL form, without padding."""

from __future__ import annotations

import base64


def encode(data: bytes) -> str:
    """The text."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """The bytes; raises `ValueError` for what is no such text."""
    return base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_")
