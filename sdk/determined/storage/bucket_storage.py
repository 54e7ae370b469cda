"""Checkpoints in a bucket of an object store, whichever it is."""

import abc
import contextlib
import os
import pathlib
import posixpath
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import cached_property

from determined import errors
from determined.storage import download, transfer
from determined.storage import globs as _globs
from determined.storage.base import CloudStorageManager
from determined.storage.bucket import Bucket, StoreError, Streams
from determined.storage.listing import Resources, Selector, choose, inside, list_directory, only, with_parents
from determined.storage.progress import Meter, Progress


def normalize_prefix(prefix: str | None) -> str:
    """Return the prefix without leading or trailing slashes. Raises ValueError if a part is `..`."""
    if ".." in (prefix or "").split("/"):
        raise ValueError(f"prefix must not match: {prefix!r} has a part '..'")
    normal = posixpath.normpath("/" + (prefix or "")).strip("/")
    return normal


def _check_places(names: Iterable[str]) -> None:
    """Raise ValueError for names that no file system can hold. Another program may have stored them."""
    taken: dict[str, str] = {}
    for name in names:
        place = inside(name)
        other = taken.setdefault(place, name)
        if other != name and not (other.endswith("/") and name.endswith("/")):
            raise ValueError(f"objects {other!r} and {name!r} would both become {place!r}; select one")


class BucketStorageManager(CloudStorageManager):
    """Stores the files of a checkpoint as objects `[prefix/]<storage id>/<relative path>`.

    Empty directories are not stored. `temp_dir` holds checkpoints between training and upload.
    """

    ADVICE = "check the bucket, the endpoint and the keys"
    """What to do if the store refuses."""
    _UNSENT: tuple[str, ...] = ()
    """Attributes that another process makes anew."""

    def __init__(self, prefix: str | None = None, temp_dir: str | None = None) -> None:
        self._prefix = normalize_prefix(prefix)
        self._temp_dir = temp_dir

    def __getstate__(self) -> dict[str, object]:
        # Another process creates its own connections.
        return {name: value for name, value in self.__dict__.items() if name not in ("_store", *self._UNSENT)}

    def get_storage_prefix(self, storage_id: str) -> str:
        """Return the prefix of a checkpoint's object names, without the trailing `/`."""
        return posixpath.join(self._prefix, storage_id)

    @cached_property
    def _store(self) -> Bucket:
        return self._connect()

    @abc.abstractmethod
    def _connect(self) -> Bucket:
        """Return the bucket. Nothing needs to be asked before its first use."""

    @contextlib.contextmanager
    def _naming_the_place(self) -> Iterator[None]:
        try:
            yield
        except Exception as e:
            if not isinstance(e, (StoreError, *self._client_errors())):
                raise
            reason = " ".join(str(e).split())
            raise OSError(f"the checkpoint storage {self!r} refuses: {reason}; {self.ADVICE}") from e

    def _client_errors(self) -> tuple[type[Exception], ...]:
        """Errors of the store's client that are its refusals."""
        return ()

    def _root(self, storage_id: str) -> str:
        return posixpath.join(self._prefix, inside(storage_id)) + "/"

    def _objects(self, storage_id: str) -> Resources:
        root = self._root(storage_id)
        with self._naming_the_place():
            sizes = self._store.sizes(root)
        return {key[len(root) :]: size for key, size in sizes.items() if key != root}

    def _checksums(self, storage_id: str) -> str:
        """Return the prefix of an id's checksums: next to its files, not among them."""
        return self._root(storage_id)[:-1] + ".checksums/"

    def upload(
        self,
        src: "str | os.PathLike[str]",
        dst: str,
        paths: Iterable[str] | None = None,
        *,
        progress: Progress | None = None,
        checksums: bool = True,
    ) -> None:
        files = {n: s for n, s in only(list_directory(src), paths).items() if not n.endswith("/")}
        root, meter = self._root(dst), Meter(sum(files.values()), progress)
        with self._naming_the_place():
            uploaded = transfer.upload(self._store, root, pathlib.Path(src), files, meter)
            # After the files: checksums of a file that did not arrive would be worse than none.
            if checksums and uploaded:
                transfer.keep_checksums(self._store, self._checksums(dst), uploaded)

    def download(
        self,
        src: str,
        dst: "str | os.PathLike[str]",
        selector: Selector | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        names = choose(self.list_resources(src), selector)
        _check_places(names)
        target = pathlib.Path(dst)
        for directory in {name if name.endswith("/") else posixpath.dirname(name) for name in names}:
            (target / directory).mkdir(parents=True, exist_ok=True)
        files = {n: s for n, s in names.items() if not n.endswith("/")}
        root, meter = self._root(src), Meter(sum(files.values()), progress)
        with self._naming_the_place():
            sums = transfer.kept_checksums(self._store, self._checksums(src))
            with contextlib.closing(self._streams()) as streams:
                download.download(streams, root, target, files, sums, meter)

    def _streams(self) -> Streams:
        return self._store.streams()

    def list_resources(self, src: str) -> Resources:
        objects = self._objects(src)
        if not objects:
            raise errors.CheckpointNotFound(f"there is no checkpoint {src} in {self!r}")
        return with_parents(objects)

    def delete(self, tgt: str, globs: Iterable[str]) -> Resources:
        objects = self._objects(tgt)
        matched, left = _globs.split(with_parents(objects), globs)
        # A directory is only a common prefix of names, so without files it does not exist.
        files_left = {name: size for name, size in left.items() if not name.endswith("/")}
        with self._naming_the_place():
            self._store.delete([self._root(tgt) + name for name in only(objects, matched)])
            if not files_left:
                self._store.delete(list(self._store.sizes(self._checksums(tgt))))
        return with_parents(files_left)

    @contextlib.contextmanager
    def restore_path(self, src: str, selector: Selector | None = None) -> Iterator[pathlib.Path]:
        with tempfile.TemporaryDirectory(prefix="checkpoint-", dir=self._temp_dir) as scratch:
            path = pathlib.Path(scratch, "checkpoint")
            self.download(src, path, selector)
            path.mkdir(exist_ok=True)
            yield path

    def store_path_is_direct_access(self) -> bool:
        return False

    def pre_store_path(self, dst: str) -> pathlib.Path:
        # Before the script writes for minutes into a directory that cannot be stored under this name.
        inside(dst)
        return pathlib.Path(tempfile.mkdtemp(prefix="checkpoint-", dir=self._temp_dir))

    def post_store_path(self, src: pathlib.Path, dst: str, paths: Iterable[str] | None = None) -> None:
        self.upload(src, dst, paths)
        shutil.rmtree(src, ignore_errors=True)

    def discard(self, src: pathlib.Path, dst: str) -> None:
        shutil.rmtree(src, ignore_errors=True)
        self.delete_quietly(dst)
