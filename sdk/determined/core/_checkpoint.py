"""Storing and restoring the state of training (core API spec, section 7)."""

import contextlib
import enum
import json
import logging
import os
import pathlib
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from determined.core._checkpoint_background import BackgroundUpload
from determined.core._checkpoint_download import download_shared, restore_shared
from determined.core._checkpoint_files import METADATA_FILE
from determined.core._checkpoint_merge import merge_metadata, merge_resources
from determined.core._checkpoint_shards import ShardedWriter
from determined.core._checkpoint_writer import SingleWriter, Writer
from determined.core._distributed import DistributedContext
from determined.storage import Resources, Selector, StorageManager
from determined.storage.base import EVERYTHING
from determined.transport.offline import OfflineTransport
from determined.transport.protocol import StoredCheckpoint

if TYPE_CHECKING:
    from determined.transport.protocol import Transport

logger = logging.getLogger("determined.core")


class DownloadMode(enum.Enum):
    """Whether the ranks of a node share one download."""

    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    """All ranks of the job call; each node fetches once."""
    NoSharedDownload = "NO_SHARED_DOWNLOAD"
    """Any rank may call, and fetches for itself."""


class CheckpointContext:
    """Put checkpoints into storage, make them known, and get them back.

    A checkpoint exists for the platform once it is reported, which happens after all of its bytes
    are stored; a failure on the way leaves nothing behind and nothing reported. With `shard=True` all ranks
    call, and all raise when one fails.

    With `background=True` the call returns before that, and training goes on. At most one such upload is
    under way: every later call here, an acknowledged preemption, a completed operation and the end of the
    context wait for it. Its failure is raised by the next `upload` or `store_path`, or at the end.
    """

    def __init__(
        self,
        dist: DistributedContext,
        storage_manager: StorageManager,
        transport: "Transport",
        uploads: BackgroundUpload | None = None,
    ) -> None:
        self._dist = dist
        self._storage = storage_manager
        self._transport = transport
        self._uploads = uploads or BackgroundUpload()

    def _writer(self, shard: bool) -> Writer:
        kind = ShardedWriter if shard and self._dist.size > 1 else SingleWriter
        return kind(self._dist, self._storage, self._uploads, self._required, self._report)

    @contextlib.contextmanager
    def store_path(
        self, metadata: dict[str, Any] | None = None, *, shard: bool = False, background: bool = False
    ) -> Iterator[tuple[pathlib.Path, str]]:
        """Give (directory, storage id): what is written into the directory becomes the checkpoint.

        `metadata` must hold `steps_completed`, at the latest when the body ends, else ValueError, and nothing
        is stored; without any metadata, or with others than a number, at entry already. RuntimeError on ranks
        other than the chief, unless all call with `shard`: the ranks of a node then share a directory.
        """
        self._check_caller("store_path", shard)
        with self._writer(shard).store_path(metadata, background) as given:
            yield given

    def upload(
        self,
        ckpt_dir: "str | os.PathLike[str] | None",
        metadata: dict[str, Any] | None = None,
        *,
        shard: bool = False,
        selector: Selector | None = None,
        background: bool = False,
    ) -> str:
        """Store a directory, or what the selector wants of it, as a checkpoint; return its storage id.

        Writes `metadata.json` into the directory first. Rules of `metadata` and rank as for `store_path`.
        With `shard` a rank without files gives None; files of one name must have one content. In the
        background the directory must stay as it is: RuntimeError, and no checkpoint, if it changes.
        """
        self._check_caller("upload", shard)
        return self._writer(shard).upload(ckpt_dir, metadata, selector, background)

    def wait_for_upload(self) -> None:
        """Wait until no upload is under way in the background; RuntimeError if it failed."""
        self._uploads.wait()

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
        self._uploads.settle()
        restored: AbstractContextManager[pathlib.Path]
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
        self._uploads.settle()
        if DownloadMode(download_mode) is DownloadMode.NoSharedDownload:
            self._storage.download(storage_id, ckpt_dir, selector)
        else:
            download_shared(self._storage, self._dist, storage_id, ckpt_dir, selector)

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Return the metadata that the cluster holds of a checkpoint; `{}` if none."""
        self._uploads.settle()
        return self._transport.checkpoint_metadata(storage_id)

    def delete(self, storage_id: str) -> None:
        """Delete the files of a checkpoint; the cluster is not told, an unknown id is no error."""
        self._uploads.settle()
        self._storage.delete(storage_id, EVERYTHING)

    def _check_caller(self, method: str, shard: bool) -> None:
        if not shard and self._dist.rank != 0:
            raise RuntimeError(
                f"core_context.checkpoint.{method}() was called from non-chief rank {self._dist.rank}; "
                "only rank 0 may, unless all ranks call with shard=True"
            )

    def _required(self, plain: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata; ValueError if something needed is missing."""
        steps = plain.get("steps_completed")
        if isinstance(steps, float) and steps.is_integer():
            return {**plain, "steps_completed": int(steps)}
        if isinstance(steps, bool) or not isinstance(steps, int):
            raise ValueError(
                f"metadata of a checkpoint must hold the integer 'steps_completed', it holds {steps!r}; "
                "pass metadata={'steps_completed': <steps trained so far>}"
            )
        return plain

    def _report(self, storage_id: str, resources: Resources, metadata: dict[str, Any]) -> None:
        self._transport.checkpoint(StoredCheckpoint(storage_id, resources, metadata))
        logger.info("Reported checkpoint to master %s", storage_id)


class DummyCheckpointContext(CheckpointContext):
    """Really store checkpoints, and tell nobody but the log."""

    def __init__(self, dist: DistributedContext, storage_manager: StorageManager) -> None:
        super().__init__(dist, storage_manager, OfflineTransport())

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Return the metadata as stored beside the files; `{}` if none was stored."""
        self._uploads.settle()
        with tempfile.TemporaryDirectory() as scratch:
            self._storage.download(storage_id, scratch, lambda name: name == METADATA_FILE)
            stored = pathlib.Path(scratch, METADATA_FILE)
            metadata: dict[str, Any] = json.loads(stored.read_bytes()) if stored.exists() else {}
            return metadata

    def _required(self, plain: dict[str, Any]) -> dict[str, Any]:
        return plain

    def _report(self, storage_id: str, resources: Resources, metadata: dict[str, Any]) -> None:
        self._transport.checkpoint(StoredCheckpoint(storage_id, resources, metadata))


__all__ = [
    "CheckpointContext",
    "DownloadMode",
    "DummyCheckpointContext",
    "merge_metadata",
    "merge_resources",
]
