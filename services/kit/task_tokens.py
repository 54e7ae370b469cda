"""Tokens by which tasks authenticate to the gateway. The scheduler issues them to the run's workers only.

A token names the run but no user: the owner of the run, and whether it is still active, are in the log. Only
scheduler and gateway have the key, so a worker has tokens only for runs placed on it.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from pathlib import Path

import msgspec

from services.kit import base64url
from services.kit.settings import BadSettings

PREFIX = "task"


class TaskToken(msgspec.Struct, frozen=True):
    """The contents of a token."""

    allocation: str


class BadTaskToken(Exception):
    """A token was not issued by this cluster or was tampered with."""


def issue(key: bytes, allocation_id: str) -> str:
    """Return the token of a run. It is always the same, on all nodes of the run."""
    body = msgspec.json.encode(TaskToken(allocation_id))
    return f"{PREFIX}.{base64url.encode(body)}.{base64url.encode(_signature(key, body))}"


def is_task_token(token: str) -> bool:
    """Whether a token claims to be a task token."""
    return token.startswith(f"{PREFIX}.")


def read(key: bytes, token: str) -> TaskToken:
    """Decode and verify a token. Raises `BadTaskToken`. The caller must check that the run still exists."""
    try:
        _, body, signature = token.split(".")
        content = base64url.decode(body)
        # Before the contents are parsed, which anybody may have written.
        if not hmac.compare_digest(_signature(key, content), base64url.decode(signature)):
            raise BadTaskToken("the token was not issued by this cluster")
        return msgspec.json.decode(content, type=TaskToken)
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise BadTaskToken("the token cannot be read") from error


def key_from(path: Path | None) -> bytes | None:
    """Read the key from a file; None if there is no path. Raises `BadSettings`."""
    if path is None:
        return None
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise BadSettings(f"STEADFAST_TASK_KEY={path} cannot be read: {error.strerror}") from error
    if not key:
        raise BadSettings(f"STEADFAST_TASK_KEY={path} is empty: 64 hexadecimal digits are expected")
    return key


def _signature(key: bytes, body: bytes) -> bytes:
    # The prefix keeps these signatures apart from any other use of the same key.
    return hmac.digest(key, b"task\n" + body, hashlib.sha256)
