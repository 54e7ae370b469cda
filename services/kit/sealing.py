"""Secrets in the log are sealed for the gateway and the workers, which have the key.

A sealed text names its owner. Copying it from the log into another user's configuration gains nothing,
because a worker opens for a task only what was sealed for the task's owner.
"""

from __future__ import annotations

import binascii
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from det_contracts.expconf import replace_secrets
from services.kit import base64url
from services.kit.settings import BadSettings

PREFIX = "sealed:1:"
KEY_BYTES = 32
FOR_WEBHOOKS = "webhooks:"
"""Owner prefix under which addresses and keys of webhooks are sealed."""


class CannotOpen(ValueError):
    """A secret is sealed with another key or for another owner. The text names it."""


class _Content(msgspec.Struct, frozen=True, array_like=True):
    owner: str
    secret: Any


class Sealer:
    """Seals secrets with the first key of one cluster, and opens what any of its keys has sealed."""

    def __init__(self, key: bytes, *earlier_keys: bytes) -> None:
        self._boxes = [SealedBox(PrivateKey(each)) for each in (key, *earlier_keys)]

    def seal(self, owner: str, secret: Any) -> str:
        """Return the text that stands for a secret in the log. It differs on every call."""
        content = msgspec.json.encode(_Content(owner, secret))
        return PREFIX + base64url.encode(self._boxes[0].encrypt(content))

    def open(self, owner: str, text: str) -> Any:
        """Return the secret. Raises `CannotOpen`."""
        try:
            content = self._decrypt(base64url.decode(text.removeprefix(PREFIX)))
            unsealed = msgspec.json.decode(content, type=_Content)
        except (CryptoError, ValueError, binascii.Error, msgspec.MsgspecError) as error:
            raise CannotOpen("it was not sealed with this STEADFAST_SEALING_KEY") from error
        if unsealed.owner != owner:
            raise CannotOpen(f"it is not sealed for {owner}")
        return unsealed.secret

    def _decrypt(self, sealed: bytes) -> bytes:
        for box in self._boxes:
            with contextlib.suppress(CryptoError):
                return box.decrypt(sealed)
        raise CryptoError


def is_sealed(value: Any) -> bool:
    """Whether a value claims to be sealed."""
    return isinstance(value, str) and value.startswith(PREFIX)


def open_secrets(config: Mapping[str, Any], owner: str, sealer: Sealer | None) -> dict[str, Any]:
    """Return a configuration with its secrets in plain text, as in an old log. Raises `CannotOpen`."""

    def change(where: tuple[str, ...], value: Any) -> Any:
        if not is_sealed(value):
            return value
        try:
            if sealer is None:
                raise CannotOpen("this process has no STEADFAST_SEALING_KEY")
            return sealer.open(owner, value)
        except CannotOpen as error:
            raise CannotOpen(f"the secret {'.'.join(where)} cannot be opened: {error}") from error

    return replace_secrets(config, change)


def seal_secrets(config: Mapping[str, Any], owner: str, sealer: Sealer | None) -> dict[str, Any]:
    """Return a configuration as it may be stored in the log; without a key it is unchanged."""
    if sealer is None:
        return dict(config)
    return replace_secrets(config, lambda where, value: sealer.seal(owner, value))


def sealer_from(path: Path | None) -> Sealer | None:
    """Return the sealer for a key file, or None without a file. Raises `BadSettings`.

    The file has one key of 64 hexadecimal digits per line: first the one that seals, then earlier ones.
    """
    if path is None:
        return None
    try:
        keys = [bytes.fromhex(line) for line in path.read_text().split()]
    except (OSError, ValueError) as error:
        raise BadSettings(f"STEADFAST_SEALING_KEY={path} cannot be read: {error}") from error
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        digits = f"lines of {2 * KEY_BYTES} hexadecimal digits"
        raise BadSettings(f"STEADFAST_SEALING_KEY={path}: {digits} are expected, one for each key")
    return Sealer(*keys)
