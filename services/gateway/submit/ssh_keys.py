"""The keys of one shell: who may log in, and how they know that they reached it."""

from __future__ import annotations

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


class KeyPair(msgspec.Struct, frozen=True):
    """As OpenSSH writes them."""

    private: str
    public: str
    """One line, without a comment."""


def new_pair() -> KeyPair:
    """A key that nobody has seen."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode())
