"""Reads the files of a checkpoint from a directory or an object store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from det_contracts.object_stores import OBJECT_STORES
from det_contracts.roots import OutsideRoots, Roots, valid_checkpoint_id, valid_file_name
from services.kit.addresses import Addresses
from services.kit.allowed_paths import checkpoint_folder, open_file
from services.kit.blobs import describe_storage_error, s3_client
from services.kit.object_stores import ObjectStore, ObjectStoreError, check_address
from services.kit.storage import describe

_WITHIN_S = 300.0
"""Timeout for one file: its content is passed on as fast as the client takes it."""


class FilesMissing(Exception):
    """The storage cannot be read from here. The text says where and why."""


class File(msgspec.Struct, frozen=True):
    """One file of a checkpoint. A name ending in `/` is a directory."""

    name: str
    size_bytes: int


def opener(
    storage: Mapping[str, Any], uuid: str, files: Sequence[File], roots: Roots, addresses: Addresses
) -> CheckpointFiles:
    """Return a reader for files of one checkpoint. Raises `FilesMissing` if the storage is not readable here.

    Names and sizes come from a script and are not trusted.
    """
    try:
        for file in files:
            valid_file_name(file.name)
            if file.size_bytes < 0:
                raise OutsideRoots(f"'{file.name}' has a size of {file.size_bytes} bytes")
        if storage["type"] in ("shared_fs", "directory"):
            return _Directory(checkpoint_folder(storage, uuid, roots))
        if storage["type"] == "s3":
            return _Bucket(storage, valid_checkpoint_id(uuid), addresses)
        if storage["type"] in OBJECT_STORES:
            check_address(storage, addresses)
            return _ObjectStore(storage, valid_checkpoint_id(uuid))
    except ValueError as error:
        raise FilesMissing(str(error)) from None
    raise FilesMissing(f"checkpoint storage of type {storage['type']} cannot be read by the master")


class CheckpointFiles:
    """Reader for the files of one checkpoint. Blocking: use it in a thread."""

    def read(self, file: File) -> contextlib.AbstractContextManager[BinaryIO]:
        """Open a file's content. Raises `FilesMissing`."""
        raise NotImplementedError


class _Directory(CheckpointFiles):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def read(self, file: File) -> Iterator[BinaryIO]:
        try:
            with open_file(self._folder, file.name) as source:
                yield source
        except OutsideRoots as error:
            raise FilesMissing(str(error)) from None
        except OSError as error:
            path = self._folder / file.name
            raise FilesMissing(f"{path} cannot be read here: {error.strerror or error}") from error


class _Bucket(CheckpointFiles):
    def __init__(self, storage: Mapping[str, Any], uuid: str, addresses: Addresses) -> None:
        self._client = s3_client(
            storage.get("endpoint_url"), storage.get("access_key"), storage.get("secret_key"), addresses
        )
        self._bucket = storage["bucket"]
        self._root = _root(storage, uuid)
        self._where = describe(storage)

    @contextlib.contextmanager
    def read(self, file: File) -> Iterator[BinaryIO]:
        key = f"{self._root}/{file.name}"
        try:
            answer = self._client.get_object(self._bucket, key)
        except Exception as error:
            why = describe_storage_error(error)
            raise FilesMissing(f"{key} in {self._where} cannot be read: {why}") from error
        try:
            yield cast("BinaryIO", answer)
        finally:
            answer.close()
            answer.release_conn()


class _ObjectStore(CheckpointFiles):
    def __init__(self, storage: Mapping[str, Any], uuid: str) -> None:
        self._store = ObjectStore(storage, _WITHIN_S)
        self._root = _root(storage, uuid)
        self._where = describe(storage)

    @contextlib.contextmanager
    def read(self, file: File) -> Iterator[BinaryIO]:
        key = f"{self._root}/{file.name}"
        try:
            with self._store.open(key) as content:
                yield content
        except ObjectStoreError as error:
            raise FilesMissing(f"{key} in {self._where} cannot be read: {error.user_text}") from error


def _root(storage: Mapping[str, Any], uuid: str) -> str:
    return f"{(storage.get('prefix') or '').strip('/')}/{uuid}".lstrip("/")
