"""What every checkpoint storage can do (core API spec, section 7.3)."""

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
    """Hold trees of files, each under its own storage id.

    Implementations raise `CheckpointNotFound` for an unknown id, ValueError for an id that leads
    outside the storage, and an OSError whose text names the place when the storage refuses.
    Nothing is kept between calls, so one object serves several threads.
    """

    TYPE = ""
    """As `type` in a configuration."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any], container_path: str | None = None) -> "StorageManager":
        """The storage of a configuration without its `type`, which is that of the class."""
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

        `checksums` belong to files that are stored once; without them for what is stored again and again.
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
        """Copy the id `src`, or what the selector wants of it, into the directory `dst`.

        Nothing wanted: `dst` is not created. A file has its name only when it is whole. After a failure the
        same call goes on where it broke off, as far as the storage can.
        """

    @abc.abstractmethod
    def list_resources(self, src: str) -> Resources:
        """Return names and sizes (bytes) of everything under the id `src`."""

    @abc.abstractmethod
    def delete(self, tgt: str, globs: Iterable[str]) -> Resources:
        """Delete what the globs mean and return what is left; an unknown id is `{}`, not an error."""

    @abc.abstractmethod
    def restore_path(
        self, src: str, selector: Selector | None = None
    ) -> AbstractContextManager[pathlib.Path]:
        """Give a directory that holds the id `src` while the `with` lasts; treat it as read-only."""

    @abc.abstractmethod
    def store_path_is_direct_access(self) -> bool:
        """Say whether stored files can be opened in place, without a copy."""

    @abc.abstractmethod
    def pre_store_path(self, dst: str) -> pathlib.Path:
        """Make a fresh directory to write the content of the id `dst` into."""

    @abc.abstractmethod
    def post_store_path(self, src: pathlib.Path, dst: str, paths: Iterable[str] | None = None) -> None:
        """Move what was written into `src`, from `pre_store_path`, to its place; `src` may vanish."""

    @abc.abstractmethod
    def discard(self, src: pathlib.Path, dst: str) -> None:
        """Remove what an abandoned store left, in `src` and under the id `dst`; never raises."""

    @contextlib.contextmanager
    def store_path(self, dst: str) -> Iterator[pathlib.Path]:
        """Give a directory whose content becomes the id `dst`; an exception inside leaves nothing."""
        path = self.pre_store_path(dst)
        try:
            yield path
            self.post_store_path(path, dst)
        except BaseException:
            self.discard(path, dst)
            raise

    def delete_quietly(self, dst: str) -> None:
        """Remove whatever is under the id `dst`; a failure is only logged."""
        try:
            self.delete(dst, EVERYTHING)
        except Exception as e:
            logger.warning("could not remove the incomplete checkpoint %s: %s", dst, e)

    @staticmethod
    def _list_directory(root: "str | os.PathLike[str]") -> Resources:
        return list_directory(root)


class CloudStorageManager(StorageManager):
    """One whose files lie behind a network, and are fetched before they can be opened."""
