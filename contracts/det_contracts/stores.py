"""Where checkpoints can be stored, and alternatives to the stores of 0.25 that are not supported."""

from __future__ import annotations

SUPPORTED = ("shared_fs", "directory", "s3")
"""Supported values of `checkpoint_storage.type`."""
BY_S3 = (
    "store in Google Cloud by its S3 interface: type s3, endpoint_url https://storage.googleapis.com, and an "
    "HMAC key as access_key and secret_key"
)
UNSUPPORTED = {
    "gcs": BY_S3,
    "azure": "use a directory (shared_fs), or a store with an S3 interface (s3)",
}
"""Types of 0.25 that are not supported, with an alternative for each."""


def why_unsupported(kind: str) -> str:
    """The error message for a type in `UNSUPPORTED`; empty for any other type."""
    instead = UNSUPPORTED.get(kind)
    return f"storage of type {kind} is not offered: {instead}" if instead else ""
