"""Google Cloud Storage and Azure, for the platform itself: briefly, and only at allowed addresses."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from det_contracts.object_stores import azure_account, error_text, store_arguments
from services.kit.addresses import SETTING, Addresses, AddressRefused

if TYPE_CHECKING:
    from obstore import BytesStream
    from obstore.store import AzureStore, ClientConfig, GCSStore, RetryConfig

_TIMEOUT_S = 10.0
_CHUNK_BYTES = 1 << 20
_CODE = re.compile(r"<Code>([A-Za-z]{3,40})</Code>")
_SHOWN_CODES = {
    *("AuthenticationFailed", "AuthorizationFailure", "AuthorizationPermissionMismatch", "BlobNotFound"),
    *("ContainerNotFound", "InvalidBucketName", "NoSuchBucket", "NoSuchKey", "AccessDenied"),
}
"""Error codes that tell a user what to change."""


class ObjectStoreError(Exception):
    """The store refuses. `user_text` is what its user may read, which is never the store's own text."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error_text(error))
        # The user chooses the address, so its answer may be a page of the cluster's network; only known codes
        # are shown.
        code = _CODE.search(str(error))
        is_shown = code is not None and code[1] in _SHOWN_CODES
        self.user_text = (
            f"it answers {code[1]}" if code and is_shown else "it does not answer as such a store does"
        )


def check_address(storage: Mapping[str, Any], addresses: Addresses) -> None:
    """Raise `AddressRefused` if a storage is elsewhere than at Google, Azure, or what the settings name.

    The client follows redirects and resolves names itself, so a public address is not enough.
    """
    if storage["type"] != "azure":
        return
    account = azure_account(storage)
    if not account.is_azure() and not addresses.is_named(account.url):
        raise AddressRefused(
            f"{urlsplit(account.url).hostname} is not contacted from here: it is not an address of Azure. "
            f"The cluster's operator can allow it with {SETTING}"
        )


class ObjectStore:
    """The bucket or container of a storage of type gcs or azure. Blocking. Raises `ObjectStoreError`."""

    def __init__(self, storage: Mapping[str, Any], within_s: float = _TIMEOUT_S) -> None:
        """No request, with its retry, takes longer than `within_s` seconds. Raises ValueError."""
        self._store = _connect(storage, timedelta(seconds=within_s))

    def put(self, key: str, content: bytes) -> None:
        """Store a small object."""
        import obstore

        with _translated():
            obstore.put(self._store, key, content, use_multipart=False)

    def open(self, key: str) -> BinaryIO:
        """Open an object for reading from its start."""
        import obstore

        with _translated():
            return io.BufferedReader(_Content(obstore.get(self._store, key).stream(_CHUNK_BYTES)))

    def delete(self, key: str) -> None:
        """Delete an object."""
        import obstore

        with _translated():
            obstore.delete(self._store, key)


def _connect(storage: Mapping[str, Any], within: timedelta) -> GCSStore | AzureStore:
    from obstore.exceptions import BaseError
    from obstore.store import AzureStore, GCSStore

    kind = GCSStore if storage["type"] == "gcs" else AzureStore
    client: ClientConfig = {"timeout": within, "connect_timeout": within / 2, "allow_http": True}
    retries: RetryConfig = {"max_retries": 1, "retry_timeout": within}
    try:
        return kind(
            **store_arguments(storage, os.environ),
            client_options=client,
            retry_config=retries,
        )
    except BaseError as error:
        raise ValueError(f"a storage of type {storage['type']} cannot be used: {error_text(error)}") from None


class _Content(io.RawIOBase):
    def __init__(self, chunks: BytesStream) -> None:
        self._chunks = iter(chunks)
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            with _translated():
                self._left = memoryview(next(self._chunks, b""))
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, FileNotFoundError) as error:
        raise ObjectStoreError(error) from None
