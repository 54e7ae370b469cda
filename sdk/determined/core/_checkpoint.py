"""Storing and restoring training state (core API spec, section 7)."""

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
from det_contracts.limits import MAX_EXACT_INTEGER, PROPERTIES_BYTES
from determined import _arguments
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
    """Whether the ranks of a node share one download.

    Example:
        ```python
        mode = det.core.DownloadMode.NoSharedDownload
        with core_context.checkpoint.restore_path(storage_id, download_mode=mode) as path:
            model.load_state_dict(torch.load(path / "model.pt"))
        ```
    """

    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    """All ranks of the job call; each node downloads once."""
    NoSharedDownload = "NO_SHARED_DOWNLOAD"
    """Any rank may call, and each downloads for itself."""


class CheckpointContext:
    """Stores, registers and restores checkpoints: `core_context.checkpoint`.

    A checkpoint is a directory of files identified by a storage id, which is a UUID. The platform registers
    it only after all of its bytes are stored; a failed upload leaves nothing behind. With `shard=True` all
    ranks must call, and if one fails, all raise. If a storage quota is exhausted, `upload` and `store_path`
    raise OSError (EDQUOT) before anything is stored.

    With `background=True` the call returns before everything is stored, and training continues. At most one
    background upload runs at a time: every later call on this object, acknowledging a preemption, completing
    an operation and closing the context all wait for it. If it fails, the next `upload` or `store_path`
    raises the error, or else closing the context does.

    Example:
        ```python
        checkpoint = core_context.checkpoint
        with checkpoint.store_path({"steps_completed": steps}) as (path, storage_id):
            torch.save(model.state_dict(), path / "model.pt")
        with checkpoint.restore_path(storage_id) as path:
            model.load_state_dict(torch.load(path / "model.pt"))
        ```
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
        # A shard of one rank is an ordinary checkpoint, and needs no exchange between ranks.
        kind = ShardedWriter if shard and self._dist.size > 1 else SingleWriter
        return kind(
            self._dist,
            self._storage,
            self._uploads,
            self._required,
            self._report,
            self._check_quota,
            self._transport.new_checkpoint_id,
        )

    @contextlib.contextmanager
    def store_path(
        self, metadata: dict[str, Any] | None = None, *, shard: bool = False, background: bool = False
    ) -> Iterator[tuple[pathlib.Path, str]]:
        """Yield an empty directory whose contents become the checkpoint when the `with` block ends.

        Args:
            metadata: Must contain `steps_completed`, the number of steps trained so far, by the time the
                block ends. You may add any other values that have a JSON form.
            shard: Whether all ranks contribute files. The ranks of a node then share a directory, and files
                of the same name must have equal contents.
            background: Whether to upload while training continues.

        Returns:
            A context manager that yields (directory, storage id).

        Raises:
            ValueError: If `steps_completed` is missing. Nothing is stored.
            RuntimeError: If called on a rank other than the chief without `shard=True`.
            OSError: EDQUOT if a storage quota is exhausted. Nothing is stored.

        Example:
            ```python
            with core_context.checkpoint.store_path({"steps_completed": steps}) as (path, storage_id):
                torch.save(model.state_dict(), path / "model.pt")
            ```
        """
        self._check_caller("store_path", shard)
        with self._writer(shard).store_path(metadata, background) as path_and_id:
            yield path_and_id

    def upload(
        self,
        ckpt_dir: "str | os.PathLike[str] | None",
        metadata: dict[str, Any] | None = None,
        *,
        shard: bool = False,
        selector: Selector | None = None,
        background: bool = False,
    ) -> str:
        """Store an existing directory as a checkpoint. First writes `metadata.json` into the directory.

        Args:
            ckpt_dir: The directory. With `shard`, None for a rank that has no files.
            metadata: As for `store_path`.
            shard: As for `store_path`.
            selector: Chooses the files. Called with each path relative to the directory.
            background: Whether to upload while training continues. The directory must not change until the
                upload has finished.

        Returns:
            The storage id.

        Raises:
            ValueError: If `steps_completed` is missing. Nothing is stored.
            RuntimeError: If called on a rank other than the chief without `shard=True`, or if the directory
                changes during a background upload.
            OSError: EDQUOT if a storage quota is exhausted. Nothing is stored.

        Example:
            ```python
            storage_id = core_context.checkpoint.upload("out/step-100", {"steps_completed": 100})
            ```
        """
        self._check_caller("upload", shard)
        _check_files(ckpt_dir, selector)
        if shard and selector is not None:
            selector = _beside_metadata(selector)
        return self._writer(shard).upload(ckpt_dir, metadata, selector, background)

    def wait_for_upload(self) -> None:
        """Wait until no background upload is running.

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
        """Yield a directory with the files of a checkpoint, to be read inside the `with` block.

        Args:
            storage_id: Storage id of the checkpoint, such as `info.latest_checkpoint`.
            download_mode: With `LocalWorkersShareDownload`, all ranks call and each node downloads once. With
                `NoSharedDownload`, any rank may call and downloads for itself.
            selector: Chooses the files. Called with each path relative to the checkpoint.

        Returns:
            A context manager that yields the directory. Do not change what is in it: if the storage is a
            shared directory, these are the stored files themselves.

        Raises:
            CheckpointNotFound: If there is no checkpoint with this id.

        Example:
            ```python
            if info.latest_checkpoint is not None:
                with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
                    model.load_state_dict(torch.load(path / "model.pt"))
            ```
        """
        _check_wanted(storage_id, selector)
        mode = _arguments.member("download_mode", download_mode, DownloadMode)
        # Not `wait`: a failed upload must not spoil a restore. The next upload raises its error.
        self._uploads.settle()
        restored: AbstractContextManager[pathlib.Path]
        if mode is DownloadMode.NoSharedDownload:
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
            storage_id: Storage id of the checkpoint.
            ckpt_dir: Target directory. It is created unless the selector rejects every file.
            download_mode: As for `restore_path`.
            selector: Chooses the files. Called with each path relative to the checkpoint.

        Raises:
            CheckpointNotFound: When there is no checkpoint with this id.

        Example:
            ```python
            core_context.checkpoint.download(info.latest_checkpoint, "resumed")
            state = torch.load("resumed/model.pt")
            ```
        """
        _check_wanted(storage_id, selector)
        _arguments.path("ckpt_dir", ckpt_dir)
        mode = _arguments.member("download_mode", download_mode, DownloadMode)
        self._uploads.settle()
        if mode is DownloadMode.NoSharedDownload:
            self._storage.download(storage_id, ckpt_dir, selector)
        else:
            download_shared(self._storage, self._dist, storage_id, ckpt_dir, selector)

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Return the metadata of a checkpoint.

        Args:
            storage_id: Storage id of the checkpoint.

        Returns:
            What was given when it was stored; `{}` if the cluster knows none.

        Example:
            ```python
            steps = core_context.checkpoint.get_metadata(info.latest_checkpoint)["steps_completed"]
            ```
        """
        _check_wanted(storage_id)
        self._uploads.settle()
        return self._transport.checkpoint_metadata(storage_id)

    def delete(self, storage_id: str) -> None:
        """Delete the files of a checkpoint. The cluster is not notified. An unknown id is not an error.

        Args:
            storage_id: Storage id of the checkpoint.

        Example:
            ```python
            for storage_id in outdated:
                core_context.checkpoint.delete(storage_id)
            ```
        """
        _check_wanted(storage_id)
        self._uploads.settle()
        self._storage.delete(storage_id, EVERYTHING)

    def _check_caller(self, method: str, shard: bool) -> None:
        if not shard and self._dist.rank != 0:
            raise RuntimeError(
                f"core_context.checkpoint.{method}() was called from non-chief rank {self._dist.rank}; "
                "only rank 0 may, unless all ranks call with shard=True"
            )

    def _required(self, plain: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata. Raises ValueError if it is incomplete or too large."""
        if beyond := too_large("metadata", plain, PROPERTIES_BYTES):
            raise ValueError(f"the checkpoint is not stored: its {beyond}")
        steps = plain.get("steps_completed")
        # Computed as `epoch * batches / n`, a whole number may be a float.
        if isinstance(steps, float) and steps.is_integer():
            steps = int(steps)
        if isinstance(steps, bool) or not isinstance(steps, int) or not 0 <= steps < MAX_EXACT_INTEGER:
            raise ValueError(
                "metadata of a checkpoint must hold 'steps_completed', an integer from 0 to 2**53 - 1, it "
                f"holds {repr(steps)[:100]}; pass metadata={{'steps_completed': <steps trained so far>}}"
            )
        return {**plain, "steps_completed": steps}

    def _check_quota(self, size_bytes: int) -> None:
        """Raise OSError (EDQUOT) if a storage quota is exhausted. Called before the first byte is written."""
        refusal = self._transport.storage_refusal(size_bytes)
        if refusal:
            raise OSError(errno.EDQUOT, f"the checkpoint is not stored: {refusal}")

    def _report(self, storage_id: str, resources: Resources, metadata: dict[str, Any]) -> None:
        self._transport.checkpoint(StoredCheckpoint(storage_id, resources, metadata))
        logger.info("Reported checkpoint to master %s", storage_id)


def _check_files(ckpt_dir: Any, selector: Any) -> None:
    if ckpt_dir is not None:
        _arguments.path("ckpt_dir", ckpt_dir)
    _arguments.function("selector", selector, "a path")


def _beside_metadata(selector: Selector) -> Selector:
    """Choose `metadata.json`, too: it belongs to all shards, so the selector of one is not asked about it."""
    return lambda name: name == METADATA_FILE or selector(name)


def _check_wanted(storage_id: Any, selector: Any = None) -> None:
    """Raise TypeError for what cannot be the id of a checkpoint, such as the one of a trial that has none."""
    expected = "the id of a checkpoint (str); info.latest_checkpoint is None before the first one is stored"
    _arguments.text("storage_id", storage_id, expected)
    _arguments.function("selector", selector, "a path")


class DummyCheckpointContext(CheckpointContext):
    """Stores checkpoints, and reports them only in the log."""

    def __init__(self, dist: DistributedContext, storage_manager: StorageManager) -> None:
        super().__init__(dist, storage_manager, OfflineTransport())

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Return the metadata stored with the files, or `{}` if none was stored."""
        _check_wanted(storage_id)
        self._uploads.settle()
        with tempfile.TemporaryDirectory() as scratch:
            # Only the one file: a checkpoint may have many gigabytes.
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
