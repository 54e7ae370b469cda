"""Storing and restoring the state of training (core API spec, section 7)."""

import contextlib
import enum
import errno
import json
import logging
import os
import pathlib
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from det_contracts.bounds import too_large
from det_contracts.limits import PROPERTIES_BYTES
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
    """Stores checkpoints, makes them known, and gets them back: `core_context.checkpoint`.

    A checkpoint is a folder of files with a storage id, a UUID. It exists for the platform once all of its
    bytes are stored: a failure on the way leaves nothing behind. With `shard=True` all ranks call, and all
    raise when one fails. Where a quota of storage is used up, `upload` and `store_path` raise OSError
    (EDQUOT) before anything is stored.

    With `background=True` a call returns before everything is stored, while training continues. At most one
    such upload is under way: every later call here, an acknowledged preemption, a completed operation and the
    end of the context wait for it. Its failure is raised by the next `upload` or `store_path`, or at the end.
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
        return kind(self._dist, self._storage, self._uploads, self._required, self._report, self._check_quota)

    @contextlib.contextmanager
    def store_path(
        self, metadata: dict[str, Any] | None = None, *, shard: bool = False, background: bool = False
    ) -> Iterator[tuple[pathlib.Path, str]]:
        """Give an empty directory; what is written into it becomes the checkpoint when the `with` block ends.

        Args:
            metadata: Must hold `steps_completed`, the number of steps trained so far, at the latest when the
                block ends. Other values with a JSON form are yours.
            shard: Whether all ranks contribute files. Those of one node then share a directory, and names
                must differ unless the contents are equal.
            background: Whether to upload while training continues.

        Returns:
            A context manager of (directory, storage id).

        Raises:
            ValueError: Without `steps_completed`; nothing is stored.
            RuntimeError: On ranks other than the chief, unless all call with `shard`.
            OSError: EDQUOT, where a quota of storage is used up; nothing is stored.

        Example:
            ```python
            with core_context.checkpoint.store_path({"steps_completed": steps}) as (path, storage_id):
                torch.save(model.state_dict(), path / "model.pt")
            ```
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
        """Store a directory that exists already as a checkpoint. Writes `metadata.json` into it first.

        Args:
            ckpt_dir: The directory. With `shard`, None for a rank without files.
            metadata: As for `store_path`.
            shard: As for `store_path`.
            selector: Which files: called with each path relative to the directory.
            background: Whether to upload while training continues; the directory must not change until then.

        Returns:
            The storage id.

        Raises:
            ValueError: Without `steps_completed`; nothing is stored.
            RuntimeError: On ranks other than the chief, unless all call with `shard`; when a directory
                changes during an upload in the background.
            OSError: EDQUOT, where a quota of storage is used up; nothing is stored.

        Example:
            ```python
            storage_id = core_context.checkpoint.upload("out/step-100", {"steps_completed": 100})
            ```
        """
        self._check_caller("upload", shard)
        return self._writer(shard).upload(ckpt_dir, metadata, selector, background)

    def wait_for_upload(self) -> None:
        """Wait until no upload is under way in the background.

        Raises:
            RuntimeError: When the upload has failed.

        Example:
            ```python
            core_context.checkpoint.upload("out", {"steps_completed": 100}, background=True)
            train_one_epoch()
            core_context.checkpoint.wait_for_upload()  # from here on "out" may be changed
            ```
        """
        self._uploads.wait()

    @contextlib.contextmanager
    def restore_path(
        self,
        storage_id: str,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> Iterator[pathlib.Path]:
        """Give a directory with the files of a checkpoint for as long as the `with` block lasts. Treat it as
        read-only.

        Args:
            storage_id: Which checkpoint, such as `info.latest_checkpoint`.
            download_mode: `LocalWorkersShareDownload`: all ranks call, each node fetches once.
                `NoSharedDownload`: any rank may call, and fetches for itself.
            selector: Which files: called with each path relative to the checkpoint.

        Returns:
            A context manager of the directory. Where the storage is a shared directory, these are the stored
            files themselves.

        Raises:
            CheckpointNotFound: When there is no checkpoint with this id.

        Example:
            ```python
            if info.latest_checkpoint is not None:
                with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
                    model.load_state_dict(torch.load(path / "model.pt"))
            ```
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
        """Copy a checkpoint into a directory.

        Args:
            storage_id: Which checkpoint.
            ckpt_dir: The directory; it is created, unless the selector wants nothing.
            download_mode: As for `restore_path`.
            selector: Which files: called with each path relative to the checkpoint.

        Raises:
            CheckpointNotFound: When there is no checkpoint with this id.

        Example:
            ```python
            core_context.checkpoint.download(info.latest_checkpoint, "resumed")
            state = torch.load("resumed/model.pt")
            ```
        """
        self._uploads.settle()
        if DownloadMode(download_mode) is DownloadMode.NoSharedDownload:
            self._storage.download(storage_id, ckpt_dir, selector)
        else:
            download_shared(self._storage, self._dist, storage_id, ckpt_dir, selector)

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Return the metadata of a checkpoint.

        Args:
            storage_id: Which checkpoint.

        Returns:
            What was given when it was stored; `{}` if the cluster knows none.

        Example:
            ```python
            steps = core_context.checkpoint.get_metadata(info.latest_checkpoint)["steps_completed"]
            ```
        """
        self._uploads.settle()
        return self._transport.checkpoint_metadata(storage_id)

    def delete(self, storage_id: str) -> None:
        """Delete the files of a checkpoint. The cluster is not notified; an unknown id is not an error.

        Args:
            storage_id: Which checkpoint.
        """
        self._uploads.settle()
        self._storage.delete(storage_id, EVERYTHING)

    def _check_caller(self, method: str, shard: bool) -> None:
        if not shard and self._dist.rank != 0:
            raise RuntimeError(
                f"core_context.checkpoint.{method}() was called from non-chief rank {self._dist.rank}; "
                "only rank 0 may, unless all ranks call with shard=True"
            )

    def _required(self, plain: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata; ValueError if something needed is missing, or it is too large to be kept."""
        if beyond := too_large("metadata", plain, PROPERTIES_BYTES):
            raise ValueError(f"the checkpoint is not stored: its {beyond}")
        steps = plain.get("steps_completed")
        if isinstance(steps, float) and steps.is_integer():
            return {**plain, "steps_completed": int(steps)}
        if isinstance(steps, bool) or not isinstance(steps, int):
            raise ValueError(
                f"metadata of a checkpoint must hold the integer 'steps_completed', it holds {steps!r}; "
                "pass metadata={'steps_completed': <steps trained so far>}"
            )
        return plain

    def _check_quota(self, size_bytes: int) -> None:
        """Raise OSError (EDQUOT) where a quota of storage is used up: before the first byte is written."""
        refusal = self._transport.storage_refusal(size_bytes)
        if refusal:
            raise OSError(errno.EDQUOT, f"the checkpoint is not stored: {refusal}")

    def _report(self, storage_id: str, resources: Resources, metadata: dict[str, Any]) -> None:
        self._transport.checkpoint(StoredCheckpoint(storage_id, resources, metadata))
        logger.info("Reported checkpoint to master %s", storage_id)


class DummyCheckpointContext(CheckpointContext):
    """Store checkpoints, and report them in the log only."""

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
