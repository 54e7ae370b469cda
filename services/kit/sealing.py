"""Secrets in the log are sealed for the gateway and the workers, which have the key.

A sealed text names its owner. Copying it from the log into another user's configuration gains nothing,
because a worker opens for a task only what was sealed for the task's owner.
"""

from __future__ import annotations

import binascii
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
    """Seals and opens secrets with the key of one cluster."""

    def __init__(self, key: bytes) -> None:
        self._box = SealedBox(PrivateKey(key))

    def seal(self, owner: str, secret: Any) -> str:
        """Return the text that stands for a secret in the log. It differs on every call."""
        content = msgspec.json.encode(_Content(owner, secret))
        return PREFIX + base64url.encode(self._box.encrypt(content))

    def open(self, owner: str, text: str) -> Any:
        """Return the secret. Raises `CannotOpen`."""
        try:
            content = self._box.decrypt(base64url.decode(text.removeprefix(PREFIX)))
            found = msgspec.json.decode(content, type=_Content)
        except (CryptoError, ValueError, binascii.Error, msgspec.MsgspecError) as error:
            raise CannotOpen("it was not sealed with this STEADFAST_SEALING_KEY") from error
        if found.owner != owner:
            raise CannotOpen(f"it is not sealed for {owner}")
        return found.secret


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
    """Return the sealer for a key file of 64 hex digits, or None without a file. Raises `BadSettings`."""
    if path is None:
        return None
    try:
        key = bytes.fromhex(path.read_text().strip())
    except (OSError, ValueError) as error:
        raise BadSettings(f"STEADFAST_SEALING_KEY={path} cannot be read: {error}") from error
    if len(key) != KEY_BYTES:
        raise BadSettings(f"STEADFAST_SEALING_KEY={path}: {2 * KEY_BYTES} hexadecimal digits are expected")
    return Sealer(key)
