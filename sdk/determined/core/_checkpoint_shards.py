"""Sharded checkpoints, where every rank stores a part (core API spec, section 7.2).

All ranks take the same steps. Before each step they exchange the outcome of the previous one, so a failure on
one rank is raised on all ranks and none is left waiting.
"""

import contextlib
import functools
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import NoReturn

from determined.core._checkpoint_division import bring, common_metadata, divide
from determined.core._checkpoint_files import (
    METADATA_FILE,
    existing_directory,
    metadata_text,
    plain_metadata,
    write_metadata,
)
from determined.core._checkpoint_writer import Given, Metadata, Store, Writer
from determined.core._collectives import Collectives, Group
from determined.core._outcome import Outcome, values_of_all
from determined.storage import Selector


class ShardedWriter(Writer):
    """All ranks store the checkpoint together; the chief reports it."""

    @contextlib.contextmanager
    def store_path(self, metadata: Metadata | None, background: bool) -> Iterator[Given]:
        storage_id, merged, has_metadata = self._enter(None, metadata)
        self._check_early(merged, has_metadata)
        path = self._open(storage_id)
        # The ranks of a node share a directory, which the rank that made it removes. With direct access
        # every rank has opened the stored directory itself, and any of them may remove it.
        owner = self._storage.store_path_is_direct_access() or self._dist.local_rank == 0
        throw = self._storage.discard if owner else _leave_it
        discard = functools.partial(throw, path, storage_id)
        try:
            try:
                yield path, storage_id
                written: Outcome[Metadata] = Outcome(lambda: plain_metadata(metadata))
            except Exception as error:
                # Not raised yet: the others will wait for the outcome of this rank.
                written = Outcome(functools.partial(_raise, error))
            everybody = values_of_all(self._dist, written)
            merged = self._required(common_metadata(everybody))
            store = self._filled(storage_id, path, merged, discard, background)
            group = self._group(background)
        except BaseException:
            discard()
            raise
        self._complete(store, group, background)

    def upload(
        self,
        ckpt_dir: "str | os.PathLike[str] | None",
        metadata: Metadata | None,
        selector: Selector | None,
        background: bool,
    ) -> str:
        directory = None if ckpt_dir is None else pathlib.Path(ckpt_dir)
        storage_id, merged, _ = self._enter(directory, metadata)
        merged = self._required(merged)
        discard = functools.partial(self._storage.delete_quietly, storage_id)
        store = self._divided(storage_id, directory, selector, merged, discard, background)
        self._complete(store, self._group(background), background)
        return storage_id

    def _enter(self, directory: pathlib.Path | None, metadata: Metadata | None) -> tuple[str, Metadata, bool]:
        """Agree on the storage id, the metadata, and whether any rank gave some, before storing anything."""

        def check() -> tuple[str, Metadata, bool]:
            # Within the step: a rank that raised alone would leave the others waiting for its outcome.
            self._uploads.wait()
            if directory is not None:
                existing_directory(directory)
            if self._dist.rank == 0:
                self._check_quota(0)
            # That of rank 0 is taken: it reports the checkpoint.
            id = self._new_id() if self._dist.rank == 0 else ""
            return id, plain_metadata(metadata), metadata is not None

        outcomes = values_of_all(self._dist, Outcome(check))
        anybody = any(has_metadata for _, _, has_metadata in outcomes)
        return outcomes[0][0], common_metadata([plain for _, plain, _ in outcomes]), anybody

    def _group(self, background: bool) -> Group | Collectives:
        # A background upload must not use the group that training uses at the same time.
        return self._dist._second_group() if background else self._dist

    def _open(self, storage_id: str) -> pathlib.Path:
        """Return this node's directory, or the one that all ranks share. On failure all ranks raise."""
        makes = self._storage.store_path_is_direct_access() or self._dist.local_rank == 0
        made = Outcome(lambda: self._storage.pre_store_path(storage_id) if makes else None)
        try:
            values_of_all(self._dist, made)
            own = made.get()
            shared: pathlib.Path = self._dist.broadcast_local(own)
        except BaseException:
            # Another rank failed, and nobody else knows of the directory that this one has made.
            if made.error is None and (own := made.get()) is not None:
                self._storage.discard(own, storage_id)
            raise
        return own or shared

    def _filled(
        self,
        storage_id: str,
        path: pathlib.Path,
        metadata: Metadata,
        discard: Callable[[], None],
        background: bool,
    ) -> Store:
        """Store a directory the ranks wrote into. It is already in place, or is uploaded and removed."""
        if self._storage.store_path_is_direct_access():
            return self._in_place(storage_id, path, metadata, discard)
        store = self._divided(storage_id, path, None, metadata, discard, background)

        def clean() -> None:
            # Only after all have sent: the other ranks of the node read from the same directory.
            if self._dist.local_rank == 0:
                self._storage.post_store_path(path, storage_id, [])

        return Store(storage_id, store.send, discard, store.report, clean)

    def _in_place(
        self, storage_id: str, path: pathlib.Path, metadata: Metadata, discard: Callable[[], None]
    ) -> Store:
        def send() -> None:
            if self._dist.rank == 0:
                write_metadata(path, metadata)

        def report() -> None:
            # Listed only now, when all ranks have written. Each rank alone knows its own files.
            self._report(storage_id, self._storage._list_directory(path), metadata)

        return Store(storage_id, send, discard, report)

    def _divided(
        self,
        storage_id: str,
        directory: pathlib.Path | None,
        selector: Selector | None,
        metadata: Metadata,
        discard: Callable[[], None],
        background: bool,
    ) -> Store:
        """Upload this rank's share of the files from all ranks."""
        mine = Outcome(lambda: bring(directory, selector, self._dist.cross_rank))
        plan = divide(self._dist, values_of_all(self._dist, mine), directory)
        added = {METADATA_FILE: len(metadata_text(metadata).encode())}
        everything = dict(sorted((plan.everything | added).items()))
        outcome = Outcome(
            lambda: self._sender(directory, storage_id, plan.mine, background) if directory else None
        )

        def send() -> None:
            # An error of `_sender` is raised here, in the step whose outcomes the ranks exchange.
            sender = outcome.get()
            if directory is not None and sender is not None and plan.writes_metadata:
                write_metadata(directory, metadata)
                sender(added)
            elif sender is not None and plan.mine:
                sender({})

        return Store(storage_id, send, discard, lambda: self._report(storage_id, everything, metadata))


def _leave_it(path: pathlib.Path, storage_id: str) -> None:
    """Do nothing; another rank of the node removes the directory."""


def _raise(error: Exception) -> NoReturn:
    raise error
