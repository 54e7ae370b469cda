"""Presigned URLs for many objects of a bucket, for clients without credentials.

The store's client computes every URL from scratch, which takes a tenth of a millisecond. This module does
that once a minute, and signs other keys using the parts that all URLs have in common.
"""

import hashlib
import hmac
import time
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

if TYPE_CHECKING:
    from minio import Minio
    from minio.credentials.credentials import Credentials
    from minio.credentials.providers import Provider

VALID = timedelta(hours=1)
_RENEWED_S = 60.0
_SAMPLE = "sample"
_SIGNATURE = "&X-Amz-Signature="


class _Common(NamedTuple):
    pattern: "_Pattern | None"
    credentials: "Credentials"
    until: float


class Signer:
    """Signs GET requests. Safe to use from several threads."""

    def __init__(self, client: "Minio", bucket: str, provider: "Provider") -> None:
        """`provider` holds the credentials that the client uses."""
        self._client = client
        self._bucket = bucket
        self._provider = provider
        self._common: _Common | None = None

    def address(self, key: str) -> SplitResult:
        """Return the URL of an object. It is valid for an hour, or until the credentials expire."""
        common, credentials = self._common, self._provider.retrieve()
        # Role credentials expire and are replaced in time.
        if not common or time.monotonic() >= common.until or credentials != common.credentials:
            sample = self._by_client(_SAMPLE)
            pattern = _Pattern(sample, credentials.secret_key)
            # If the client signs differently, or has got new credentials, let it sign each URL itself.
            usable = pattern if pattern.address(_SAMPLE) == sample else None
            common = self._common = _Common(usable, credentials, time.monotonic() + _RENEWED_S)
        return common.pattern.address(key) if common.pattern else self._by_client(key)

    def _by_client(self, key: str) -> SplitResult:
        return urlsplit(self._client.get_presigned_url("GET", self._bucket, key, expires=VALID))


class _Pattern:
    """The common parts of URLs signed at the same time (AWS signature, version 4)."""

    def __init__(self, url: SplitResult, secret_key: str) -> None:
        self._scheme, self._netloc = url.scheme, url.netloc
        self._folder = url.path.removesuffix(_SAMPLE)
        self._query = url.query.partition(_SIGNATURE)[0]
        params = dict(parse_qsl(url.query))
        scope = params.get("X-Amz-Credential", "").partition("/")[2]
        self._head = f"AWS4-HMAC-SHA256\n{params.get('X-Amz-Date')}\n{scope}\n"
        ordered = "&".join(sorted(self._query.split("&")))
        self._tail = f"\n{ordered}\nhost:{url.netloc}\n\nhost\nUNSIGNED-PAYLOAD"
        self._key = f"AWS4{secret_key}".encode()
        for part in scope.split("/"):
            self._key = hmac.digest(self._key, part.encode(), "sha256")

    def address(self, key: str) -> SplitResult:
        path = self._folder + quote(key)
        digest = hashlib.sha256(f"GET\n{path}{self._tail}".encode()).hexdigest()
        signature = hmac.digest(self._key, (self._head + digest).encode(), "sha256").hex()
        return SplitResult(self._scheme, self._netloc, path, self._query + _SIGNATURE + signature, "")
