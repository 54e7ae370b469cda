"""The interface of checkpoint storage (core API spec, section 7.3)."""

import abc
import contextlib
import logging
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from determined.storage.listing import Resources, Selector, list_directory
from determined.storage.progress import Progress

logger = logging.getLogger("determined.storage")

EVERYTHING = ["**/*"]


class StorageManager(abc.ABC):
    """Stores file trees, each under its own storage id.

    Implementations raise `CheckpointNotFound` for an unknown id, ValueError for an id that leads outside the
    storage, and OSError naming the location if the storage refuses. No state is kept between calls, so
    several threads may share one object.
    """

    TYPE = ""
    """Value of `type` in a configuration."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any], container_path: str | None = None) -> "StorageManager":
        """Create the storage from a configuration without `type`, which the class determines."""
        from determined.storage.build import build

        return build({**config, "type": cls.TYPE}, container_path)

    @abc.abstractmethod
    def upload(
        self,
        src: "str | os.PathLike[str]",
        dst: str,
        paths: Iterable[str] | None = None,
        *,
        progress: Progress | None = None,
        checksums: bool = True,
    ) -> None:
        """Copy the directory `src`, or only the names in `paths`, to the id `dst`.

        Use `checksums` for files that are stored once, and disable it for files that are stored repeatedly.
        """

    @abc.abstractmethod
    def download(
        self,
        src: str,
        dst: "str | os.PathLike[str]",
        selector: Selector | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Copy the id `src`, or the files the selector chooses, to the directory `dst`.

        If nothing is selected, `dst` is not created. A file gets its name only when it is complete. After a
        failure, the same call resumes where it stopped, as far as the storage supports that.
        """

    @abc.abstractmethod
    def list_resources(self, src: str) -> Resources:
        """Return the names and sizes (in bytes) of everything under the id `src`."""

    @abc.abstractmethod
    def delete(self, tgt: str, globs: Iterable[str]) -> Resources:
        """Delete the files matching the globs and return what is left. An unknown id returns `{}`."""

    @abc.abstractmethod
    def restore_path(
        self, src: str, selector: Selector | None = None
    ) -> AbstractContextManager[pathlib.Path]:
        """Yield a directory with the contents of the id `src`. Treat it as read-only."""

    @abc.abstractmethod
    def store_path_is_direct_access(self) -> bool:
        """Return whether stored files can be opened in place, without copying."""

    @abc.abstractmethod
    def pre_store_path(self, dst: str) -> pathlib.Path:
        """Create a new directory for writing the content of the id `dst`."""

    @abc.abstractmethod
    def post_store_path(self, src: pathlib.Path, dst: str, paths: Iterable[str] | None = None) -> None:
        """Move the content of `src`, from `pre_store_path`, to its place. `src` may be removed."""

    @abc.abstractmethod
    def discard(self, src: pathlib.Path, dst: str) -> None:
        """Remove the remains of an abandoned store, in `src` and under the id `dst`. Never raises."""

    @contextlib.contextmanager
    def store_path(self, dst: str) -> Iterator[pathlib.Path]:
        """Yield a directory whose contents become the id `dst`. An exception inside leaves nothing behind."""
        path = self.pre_store_path(dst)
        try:
            yield path
            self.post_store_path(path, dst)
        except BaseException:
            self.discard(path, dst)
            raise

    def delete_quietly(self, dst: str) -> None:
        """Remove everything under the id `dst`. Failures are only logged."""
        try:
            self.delete(dst, EVERYTHING)
        except Exception as e:
            # Called while another error is raised, which must not be hidden.
            logger.warning("could not remove the incomplete checkpoint %s: %s", dst, e)

    @staticmethod
    def _list_directory(root: "str | os.PathLike[str]") -> Resources:
        return list_directory(root)


class CloudStorageManager(StorageManager):
    """Storage accessed over a network. Files must be downloaded before they can be opened."""
