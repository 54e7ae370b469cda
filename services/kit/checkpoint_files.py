"""Reads the files of a checkpoint where they lie: in a directory or in an S3 bucket."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from services.kit.blobs import s3_client
from services.kit.storage import describe, directory_of


class FilesMissing(Exception):
    """The storage cannot be read from here; the text says where and why."""


class File(msgspec.Struct, frozen=True):
    """One file of a checkpoint; a name that ends in `/` is a directory."""

    name: str
    size_bytes: int


def opener(storage: Mapping[str, Any], uuid: str) -> CheckpointFiles:
    """The files of one checkpoint; raises `FilesMissing` for a storage that only scripts can reach."""
    if storage["type"] in ("shared_fs", "directory"):
        return _Directory(directory_of(storage) / uuid)
    if storage["type"] == "s3":
        return _Bucket(storage, uuid)
    raise FilesMissing(f"checkpoint storage of type {storage['type']} cannot be read by the master")


class CheckpointFiles:
    """Blocking: use it in a thread."""

    def read(self, file: File) -> contextlib.AbstractContextManager[BinaryIO]:
        """A file's content; raises `FilesMissing`."""
        raise NotImplementedError


class _Directory(CheckpointFiles):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def read(self, file: File) -> Iterator[BinaryIO]:
        path = self._folder / file.name
        try:
            # A link in a checkpoint must not lead out of it.
            inside = path.resolve().is_relative_to(self._folder.resolve())
            if not inside:
                raise FilesMissing(f"{path} leads out of its checkpoint")
            with path.open("rb") as source:
                yield source
        except OSError as error:
            raise FilesMissing(f"{path} cannot be read here: {error.strerror or error}") from error


class _Bucket(CheckpointFiles):
    def __init__(self, storage: Mapping[str, Any], uuid: str) -> None:
        self._client = s3_client(
            storage.get("endpoint_url"), storage.get("access_key"), storage.get("secret_key")
        )
        self._bucket = storage["bucket"]
        self._root = f"{(storage.get('prefix') or '').strip('/')}/{uuid}".lstrip("/")
        self._where = describe(storage)

    @contextlib.contextmanager
    def read(self, file: File) -> Iterator[BinaryIO]:
        key = f"{self._root}/{file.name}"
        try:
            answer = self._client.get_object(self._bucket, key)
        except Exception as error:
            raise FilesMissing(f"{key} in {self._where} cannot be read: {error}") from error
        try:
            yield cast("BinaryIO", answer)
        finally:
            answer.close()
            answer.release_conn()
