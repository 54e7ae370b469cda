"""What a task shows to the gateway: a token that its worker signs with the key for scripts.

The gateway knows the public key alone. A token is worth as much as its allocation: it acts for the owner of
the task, and dies with the run.
"""

from __future__ import annotations

import base64
import binascii

import msgspec
import nkeys
from nacl.exceptions import BadSignatureError
from nacl.exceptions import ValueError as BadSignatureLength
from nacl.signing import VerifyKey

from services.kit import base64url

PREFIX = "task"
_KEY = slice(1, -2)
"""Of a decoded public key: between the byte that tells its kind and its checksum."""


class TaskToken(msgspec.Struct, frozen=True):
    """What a token says."""

    allocation: str
    user: str
    """Who the task belongs to."""


class BadTaskToken(Exception):
    """A token is not ours or was tampered with."""


def sign(seed: str, allocation_id: str, user: str) -> str:
    """The token of one run of a task; the same at every time and on every worker."""
    body = msgspec.json.encode(TaskToken(allocation_id, user))
    signature: bytes = nkeys.from_seed(bytearray(seed.encode())).sign(body)
    return f"{PREFIX}.{base64url.encode(body)}.{base64url.encode(signature)}"


def is_task_token(token: str) -> bool:
    """Whether a token claims to be a task's."""
    return token.startswith(f"{PREFIX}.")


def read(public_key: str, token: str) -> TaskToken:
    """What a token says; raises `BadTaskToken`. Whether the run is still there is for the caller to see."""
    try:
        _, body, signature = token.split(".")
        key = VerifyKey(base64.b32decode(public_key + "=" * (-len(public_key) % 8))[_KEY])
        said = base64url.decode(body)
        key.verify(said, base64url.decode(signature))
        return msgspec.json.decode(said, type=TaskToken)
    except (BadSignatureError, BadSignatureLength) as error:
        raise BadTaskToken("the token was not issued by a worker of this cluster") from error
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise BadTaskToken("the token cannot be read") from error
