"""Writes a checkpoint to storage and then reports it."""

import abc
import contextlib
import functools
import os
import pathlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from determined.core._checkpoint_background import BackgroundUpload
from determined.core._checkpoint_files import existing_directory, plain_metadata, write_metadata
from determined.core._collectives import Alone, Collectives, Group
from determined.core._distributed import DistributedContext
from determined.core._outcome import Outcome, values_of_all
from determined.storage import Resources, Selector, StorageManager
from determined.storage.listing import choose, stamps
from determined.storage.transfer_process import SeparateProcess, in_separate_process
from determined.transport.protocol import NeverStored

Metadata = dict[str, Any]
Given = tuple[pathlib.Path, str]
"""What `store_path` yields: directory and storage id."""


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Store:
    """The steps for storing a checkpoint: `send` the bytes, then `report`.

    After the bytes of all ranks have arrived, `clean` runs on each rank. On failure `discard` runs instead,
    as it does if the cluster refuses the report.
    """

    storage_id: str
    send: Callable[[], object]
    discard: Callable[[], object]
    report: Callable[[], object]
    clean: Callable[[], object] = _nothing

    def complete(self, group: Group | Collectives, leads: bool) -> None:
        """Perform the steps together with all ranks of the group. Only the first rank reports.

        If a rank fails, nothing is reported and all ranks raise.
        """
        try:
            # All bytes first, the report last: a checkpoint that is registered must be complete, because a
            # trial may be resumed from it a moment later.
            values_of_all(group, Outcome(self.send))
        except BaseException:
            self.discard()
            raise
        self.clean()
        # All ranks learn how the report went. Otherwise some would train on while the chief raises.
        reported: Outcome[object] = group.broadcast(Outcome(self.report) if leads else None)
        try:
            reported.get()
        except (NeverStored, ValueError):
            # Only then: after any other error the checkpoint may be registered, or be so later.
            self.discard()
            raise


class Writer(abc.ABC):
    """Stores checkpoints, either from one rank or from all ranks together."""

    def __init__(
        self,
        dist: DistributedContext,
        storage: StorageManager,
        uploads: BackgroundUpload,
        required: Callable[[Metadata], Metadata],
        report: Callable[[str, Resources, Metadata], None],
        check_quota: Callable[[int], None],
        new_id: Callable[[], str],
    ) -> None:
        """`required` raises if the metadata is incomplete; `report` registers a stored checkpoint.

        `check_quota` raises OSError if that many bytes must not be stored.
        """
        self._dist = dist
        self._storage = storage
        self._uploads = uploads
        self._required = required
        self._report = report
        self._check_quota = check_quota
        self._new_id = new_id

    @abc.abstractmethod
    def store_path(self, metadata: Metadata | None, background: bool) -> AbstractContextManager[Given]:
        """Yield a directory whose contents become a checkpoint at the end of the `with` block."""

    @abc.abstractmethod
    def upload(
        self,
        ckpt_dir: "str | os.PathLike[str] | None",
        metadata: Metadata | None,
        selector: Selector | None,
        background: bool,
    ) -> str:
        """Store a directory, or the files the selector chooses, and return the storage id."""

    def _check_early(self, plain: Metadata, has_metadata: bool) -> None:
        """Check the metadata before the `with` block runs, because the block may train for hours."""
        if not has_metadata or plain.get("steps_completed") is not None:
            self._required(plain)

    def _sender(
        self, directory: pathlib.Path, storage_id: str, resources: Resources, background: bool
    ) -> Callable[[Resources], None]:
        """Return a function that uploads the script's files in their current state, plus files passed to it.

        The function raises RuntimeError if the script changes its files before they are stored.
        """
        before, storage = stamps(directory, resources), self._mover(background)

        def send(others: Resources) -> None:
            storage.upload(directory, storage_id, resources | others)
            after = stamps(directory, resources)
            # A file that is written while it is read arrives as a mixture of two versions, which nobody would
            # notice before it is restored.
            changed = sorted(name for name, stamp in before.items() if after[name] != stamp)
            if changed:
                raise RuntimeError(
                    f"files changed while they were stored: {', '.join(changed)}; leave {directory} alone "
                    "until the upload is done, or use store_path(background=True)"
                )

        return send

    def _mover(self, background: bool) -> SeparateProcess | StorageManager:
        """Return the object that uploads: in the background, one that uses a separate process."""
        return in_separate_process(self._storage) if background else self._storage

    def _complete(self, store: Store, group: Group | Collectives, background: bool) -> None:
        complete = functools.partial(store.complete, group, leads=self._dist.rank == 0)
        if background:
            self._uploads.begin(store.storage_id, complete)
        else:
            complete()


class SingleWriter(Writer):
    """The calling rank stores the complete checkpoint."""

    @contextlib.contextmanager
    def store_path(self, metadata: Metadata | None, background: bool) -> Iterator[Given]:
        self._uploads.wait()
        self._check_early(plain_metadata(metadata), has_metadata=metadata is not None)
        # Its size is not known yet. A quota that is used up refuses before the script writes for minutes.
        self._check_quota(0)
        storage_id = self._new_id()
        path = self._storage.pre_store_path(storage_id)
        discard = functools.partial(self._storage.discard, path, storage_id)
        try:
            yield path, storage_id
            plain = self._required(plain_metadata(metadata))
            write_metadata(path, plain)
            resources = self._storage._list_directory(path)
        # Also for a script that leaves the block with `sys.exit` or Ctrl-C.
        except BaseException:
            discard()
            raise
        send = functools.partial(self._mover(background).post_store_path, path, storage_id)
        report = functools.partial(self._report, storage_id, resources, plain)
        self._complete(Store(storage_id, send, discard, report), Alone(), background)

    def upload(
        self,
        ckpt_dir: "str | os.PathLike[str] | None",
        metadata: Metadata | None,
        selector: Selector | None,
        background: bool,
    ) -> str:
        self._uploads.wait()
        plain = self._required(plain_metadata(metadata))
        directory = existing_directory(ckpt_dir)
        # Before the listing, so that it is among the files.
        write_metadata(directory, plain)
        resources = choose(self._storage._list_directory(directory), selector)
        self._check_quota(sum(resources.values()))
        storage_id = self._new_id()
        send = functools.partial(self._sender(directory, storage_id, resources, background), {})
        discard = functools.partial(self._storage.delete_quietly, storage_id)
        report = functools.partial(self._report, storage_id, resources, plain)
        self._complete(Store(storage_id, send, discard, report), Alone(), background)
        return storage_id
