"""The SSH keys of one shell, which authenticate the user and the server."""

from __future__ import annotations

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


class KeyPair(msgspec.Struct, frozen=True):
    """A key pair in OpenSSH format."""

    private: str
    public: str
    """One line, without a comment."""


def new_pair() -> KeyPair:
    """Generate a new key pair."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode())
