"""Tests whether a task's checkpoint storage works, before the task starts."""

from __future__ import annotations

import io
import os
import posixpath
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_contracts.object_stores import OBJECT_STORES, azure_account
from det_contracts.roots import Roots
from services.kit.allowed_paths import directory_of, is_within, storage_folder
from services.kit.blobs import s3_client
from services.kit.object_stores import ObjectStore
from services.kit.os_user import os_user

if TYPE_CHECKING:
    from minio import Minio

CONTENT = b"steadfast"
WITHIN_S = 30.0
"""How long a connection to a store may last while it is tested, in seconds."""


class StorageRefused(Exception):
    """The storage cannot be written, read or cleaned up. The text says where, as whom and why."""


def probe(storage: Mapping[str, Any], roots: Roots, *, user: str | None = None) -> None:
    """Write, read and delete a small file.

    `user` names the user whose rights apply, for the error; None: this process's user. Storage that only a
    script may reach is not tested: other types, and directories outside the storage roots.
    """
    kind = storage["type"]
    try:
        if kind in ("shared_fs", "directory"):
            if is_within(storage, roots):
                _probe_directory(storage_folder(storage, roots))
        elif kind == "s3":
            _probe_s3(storage)
        elif kind in OBJECT_STORES:
            round_trip(ObjectStore(storage), storage)
    except StorageRefused:
        raise
    except Exception as error:
        raise StorageRefused(f"{describe(storage)} (as {user or _current_user()}): {error}") from error


def describe(storage: Mapping[str, Any]) -> str:
    """Describe a storage without revealing secrets."""
    if storage["type"] == "s3":
        where = storage.get("endpoint_url") or "AWS"
        return f"s3://{storage['bucket']}/{storage.get('prefix') or ''} at {where}"
    if storage["type"] == "gcs":
        return f"gs://{storage['bucket']}/{(storage.get('prefix') or '').strip('/')}"
    if storage["type"] == "azure":
        return f"container {storage['container']} at {azure_account(storage).url}"
    return str(directory_of(storage))


def round_trip(store: ObjectStore, storage: Mapping[str, Any]) -> None:
    """Write, read and delete a small object. Raises `StorageRefused` if other content comes back."""
    prefix = (storage.get("prefix") or "").strip("/")
    name = posixpath.join(prefix, f"probe-{uuid.uuid4().hex}")
    store.put(name, CONTENT)
    try:
        with store.open(name) as written:
            # Read a bounded amount: the store is not ours and may send anything.
            if written.read(len(CONTENT) + 1) != CONTENT:
                raise StorageRefused(f"{describe(storage)} does not return what was written to it")
    finally:
        store.delete(name)


def _current_user() -> str:
    return f"user {os_user()}, id {os.getuid()}"


def _probe_directory(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not can_write_and_read(folder, CONTENT):
        raise StorageRefused(f"{folder} does not return what was written to it")


def can_write_and_read(folder: Path, content: bytes) -> bool:
    """Whether a small file in a directory can be written and read back. Raises OSError.

    Leaves nothing behind. The directory is opened once, so a link changed meanwhile cannot redirect the test.
    """
    # It need not be listed: one that its users cannot list is better.
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    name = f".probe-{uuid.uuid4().hex}"
    try:
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=opened)
        try:
            return os.write(file, content) == len(content) and os.pread(file, len(content), 0) == content
        finally:
            os.close(file)
            os.unlink(name, dir_fd=opened)
    finally:
        os.close(opened)


def _probe_s3(storage: Mapping[str, Any]) -> None:
    # Whoever named the address may answer as slowly and as much as they like.
    client = s3_client(
        storage.get("endpoint_url"), storage.get("access_key"), storage.get("secret_key"), within_s=WITHIN_S
    )
    if not s3_round_trip(client, storage, CONTENT):
        raise StorageRefused(f"{describe(storage)} does not return what was written to it")


def s3_round_trip(client: Minio, storage: Mapping[str, Any], content: bytes) -> bool:
    """Write, read and delete a small object. Returns whether it came back as it was."""
    bucket = storage["bucket"]
    name = posixpath.join((storage.get("prefix") or "").strip("/"), f"probe-{uuid.uuid4().hex}")
    client.put_object(bucket, name, io.BytesIO(content), len(content))
    try:
        answer = client.get_object(bucket, name)
        try:
            # Read a bounded amount: the store is not ours and may send anything.
            return bool(answer.read(len(content) + 1) == content)
        finally:
            answer.close()
            answer.release_conn()
    finally:
        client.remove_object(bucket, name)
