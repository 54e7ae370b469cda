"""What a task shows to the gateway: a token that the scheduler makes, and tells the workers of the run alone.

It names the run and nobody: whose a run is, and whether it goes on, the gateway sees in the log. Scheduler
and gateway have the key. Workers have none, so a worker has tokens of what was placed on it, and no others.
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
    """What a token says."""

    allocation: str


class BadTaskToken(Exception):
    """A token is not ours or was tampered with."""


def issue(key: bytes, allocation_id: str) -> str:
    """The token of one run of a task; the same at every time, and on all its nodes."""
    body = msgspec.json.encode(TaskToken(allocation_id))
    return f"{PREFIX}.{base64url.encode(body)}.{base64url.encode(_signature(key, body))}"


def is_task_token(token: str) -> bool:
    """Whether a token claims to be a task's."""
    return token.startswith(f"{PREFIX}.")


def read(key: bytes, token: str) -> TaskToken:
    """What a token says; raises `BadTaskToken`. Whether the run is still there is for the caller to see."""
    try:
        _, body, signature = token.split(".")
        said = base64url.decode(body)
        if not hmac.compare_digest(_signature(key, said), base64url.decode(signature)):
            raise BadTaskToken("the token was not issued by this cluster")
        return msgspec.json.decode(said, type=TaskToken)
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise BadTaskToken("the token cannot be read") from error


def key_from(path: Path | None) -> bytes | None:
    """The key in a file; None where none is named. Raises `BadSettings`."""
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
    return hmac.digest(key, b"task\n" + body, hashlib.sha256)
