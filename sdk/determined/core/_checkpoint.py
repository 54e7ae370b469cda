"""Storing and restoring the state of training (core API spec, section 7)."""

import contextlib
import enum
import json
import logging
import os
import pathlib
import tempfile
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from determined.core._checkpoint_download import download_shared, restore_shared
from determined.core._checkpoint_merge import merge_metadata, merge_resources
from determined.core._distributed import DistributedContext
from determined.core._encode import encode
from determined.storage import Resources, Selector, StorageManager
from determined.storage.base import EVERYTHING
from determined.storage.tree import choose
from determined.transport.offline import OfflineTransport
from determined.transport.protocol import StoredCheckpoint

if TYPE_CHECKING:
    from determined.transport.protocol import Transport

logger = logging.getLogger("determined.core")

METADATA_FILE = "metadata.json"


class DownloadMode(enum.Enum):
    """Whether the ranks of a node share one download."""

    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    """All ranks of the job call; each node fetches once."""
    NoSharedDownload = "NO_SHARED_DOWNLOAD"
    """Any rank may call, and fetches for itself."""


def _write_metadata(directory: pathlib.Path, metadata: dict[str, Any]) -> None:
    (directory / METADATA_FILE).write_text(json.dumps(metadata, indent=2))


class CheckpointContext:
    """Put checkpoints into storage, make them known, and get them back.

    A checkpoint exists for the platform once it is reported, which happens after all of its bytes
    are stored; an exception on the way leaves nothing behind.
    """

    def __init__(
        self, dist: DistributedContext, storage_manager: StorageManager, transport: "Transport"
    ) -> None:
        self._dist = dist
        self._storage = storage_manager
        self._transport = transport

    @contextlib.contextmanager
    def store_path(
        self, metadata: dict[str, Any] | None = None, *, shard: bool = False
    ) -> Iterator[tuple[pathlib.Path, str]]:
        """Give (directory, storage id): what is written into the directory becomes the checkpoint.

        `metadata` must hold `steps_completed`, else ValueError at entry. RuntimeError on ranks
        other than the chief.
        """
        self._check_caller("store_path", shard)
        self._plain(metadata)
        storage_id = str(uuid.uuid4())
        path = self._storage.pre_store_path(storage_id)
        try:
            yield path, storage_id
            plain = self._plain(metadata)
            _write_metadata(path, plain)
            resources = self._storage._list_directory(path)
            self._storage.post_store_path(path, storage_id)
        except BaseException:
            self._storage.discard(path, storage_id)
            raise
        self._report(storage_id, resources, plain)

    def upload(
        self,
        ckpt_dir: "str | os.PathLike[str] | None",
        metadata: dict[str, Any] | None = None,
        *,
        shard: bool = False,
        selector: Selector | None = None,
    ) -> str:
        """Store a directory, or what the selector wants of it, as a checkpoint; return its storage id.

        Writes `metadata.json` into the directory first. Rules of `metadata` and rank as for `store_path`.
        """
        self._check_caller("upload", shard)
        plain = self._plain(metadata)
        directory = _existing_directory(ckpt_dir)
        _write_metadata(directory, plain)
        resources = choose(self._storage._list_directory(directory), selector)
        storage_id = str(uuid.uuid4())
        try:
            self._storage.upload(directory, storage_id, resources)
        except BaseException:
            self._storage.delete_quietly(storage_id)
            raise
        self._report(storage_id, resources, plain)
        return storage_id

    @contextlib.contextmanager
    def restore_path(
        self,
        storage_id: str,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> Iterator[pathlib.Path]:
        """Give a directory with the checkpoint's files while the `with` lasts; treat it as read-only.

        Unknown id: CheckpointNotFound. In a shared directory the stored files themselves are given.
        """
        if DownloadMode(download_mode) is DownloadMode.NoSharedDownload:
            restored = self._storage.restore_path(storage_id, selector)
        else:
            restored = restore_shared(self._storage, self._dist, storage_id, selector)
        with restored as path:
            yield path

    def download(
        self,
        storage_id: str,
        ckpt_dir: "str | os.PathLike[str]",
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> None:
        """Copy a checkpoint, or what the selector wants of it, into a directory.

        Unknown id: CheckpointNotFound. Nothing wanted: the directory is not created.
        """
        if DownloadMode(download_mode) is DownloadMode.NoSharedDownload:
            self._storage.download(storage_id, ckpt_dir, selector)
        else:
            download_shared(self._storage, self._dist, storage_id, ckpt_dir, selector)

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Return the metadata that the cluster holds of a checkpoint; `{}` if none."""
        return self._transport.checkpoint_metadata(storage_id)

    def delete(self, storage_id: str) -> None:
        """Delete the files of a checkpoint; the cluster is not told, an unknown id is no error."""
        self._storage.delete(storage_id, EVERYTHING)

    def _check_caller(self, method: str, shard: bool) -> None:
        if shard and self._dist.size > 1:
            raise NotImplementedError(
                f"core_context.checkpoint.{method}(shard=True) cannot be used with several processes yet; "
                "gather the state on rank 0 and store it there without shard"
            )
        if not shard and self._dist.rank != 0:
            raise RuntimeError(
                f"core_context.checkpoint.{method}() was called from non-chief rank {self._dist.rank}; "
                "only rank 0 may, unless all ranks call with shard=True"
            )

    def _plain(self, metadata: dict[str, Any] | None) -> dict[str, Any]:
        """Return the metadata as plain JSON values; ValueError if something needed is missing."""
        plain = _encoded(metadata)
        steps = plain.get("steps_completed")
        if isinstance(steps, bool) or not isinstance(steps, int):
            raise ValueError(
                f"metadata of a checkpoint must hold the integer 'steps_completed', it holds {steps!r}; "
                "pass metadata={'steps_completed': <steps trained so far>}"
            )
        return plain

    def _report(self, storage_id: str, resources: Resources, metadata: dict[str, Any]) -> None:
        self._transport.checkpoint(StoredCheckpoint(storage_id, resources, metadata))
        logger.info("Reported checkpoint to master %s", storage_id)


def _encoded(metadata: dict[str, Any] | None) -> dict[str, Any]:
    if not isinstance(metadata, dict | None):
        raise TypeError(f"metadata of a checkpoint must be a dict, not {type(metadata).__name__}")
    plain: dict[str, Any] = encode(metadata or {})
    return plain


def _existing_directory(ckpt_dir: "str | os.PathLike[str] | None") -> pathlib.Path:
    if ckpt_dir is None:
        raise RuntimeError("core_context.checkpoint.upload() needs a directory unless shard=True, not None")
    directory = pathlib.Path(ckpt_dir)
    if not directory.is_dir():
        kind = NotADirectoryError if directory.exists() else FileNotFoundError
        raise kind(f"core_context.checkpoint.upload() needs an existing directory, not {directory}")
    return directory


class DummyCheckpointContext(CheckpointContext):
    """Really store checkpoints, and tell nobody but the log."""

    def __init__(self, dist: DistributedContext, storage_manager: StorageManager) -> None:
        super().__init__(dist, storage_manager, OfflineTransport())

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Return the metadata as stored beside the files; `{}` if none was stored."""
        with tempfile.TemporaryDirectory() as scratch:
            self._storage.download(storage_id, scratch, lambda name: name == METADATA_FILE)
            stored = pathlib.Path(scratch, METADATA_FILE)
            metadata: dict[str, Any] = json.loads(stored.read_bytes()) if stored.exists() else {}
            return metadata

    def _plain(self, metadata: dict[str, Any] | None) -> dict[str, Any]:
        return _encoded(metadata)

    def _report(self, storage_id: str, resources: Resources, metadata: dict[str, Any]) -> None:
        self._transport.checkpoint(StoredCheckpoint(storage_id, resources, metadata))


__all__ = [
    "CheckpointContext",
    "DownloadMode",
    "DummyCheckpointContext",
    "merge_metadata",
    "merge_resources",
]
