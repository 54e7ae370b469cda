"""Where checkpoints can lie, and what to use instead of the stores of 0.25 that are not offered."""

from __future__ import annotations

OFFERED = ("shared_fs", "directory", "s3")
"""Values of `checkpoint_storage.type` that store anything."""
BY_S3 = (
    "store in Google Cloud by its S3 interface: type s3, endpoint_url https://storage.googleapis.com, and an "
    "HMAC key as access_key and secret_key"
)
NOT_OFFERED = {
    "gcs": BY_S3,
    "azure": "use a directory (shared_fs), or a store with an S3 interface (s3)",
}
"""Types that configurations of 0.25 may name, with what to do instead."""


def why_not_offered(kind: str) -> str:
    """What to tell whoever asks for a type of `NOT_OFFERED`; empty for any other."""
    instead = NOT_OFFERED.get(kind)
    return f"storage of type {kind} is not offered: {instead}" if instead else ""
