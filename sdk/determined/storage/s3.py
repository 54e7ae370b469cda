"""Checkpoints in a bucket of an S3-compatible object store."""

import contextlib
import logging
import os
import pathlib
import posixpath
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from determined import errors
from determined.storage import globs as _globs
from determined.storage.base import CloudStorageManager
from determined.storage.listing import Resources, Selector, choose, inside, list_directory, only, with_parents
from determined.storage.progress import Meter, Progress

if TYPE_CHECKING:
    from minio import Minio
    from minio.credentials.providers import Provider

    from determined.storage.s3_streams import Streams

logger = logging.getLogger("determined.storage")

_AWS = "https://s3.amazonaws.com"
_REGION_ELSEWHERE = "us-east-1"


def normalize_prefix(prefix: str | None) -> str:
    """Return the prefix without leading or trailing slashes. Raises ValueError if a part is `..`."""
    if ".." in (prefix or "").split("/"):
        raise ValueError(f"prefix must not match: {prefix!r} has a part '..'")
    normal = posixpath.normpath("/" + (prefix or "")).strip("/")
    return normal


@contextlib.contextmanager
def _naming_the_place(place: str) -> Iterator[None]:
    from minio.error import MinioException
    from urllib3.exceptions import HTTPError

    from determined.storage.s3_answers import StoreError

    try:
        yield
    except (MinioException, HTTPError, StoreError) as e:
        reason = " ".join(str(e).split())
        raise OSError(
            f"the checkpoint storage {place} refuses: {reason}; check the bucket, the endpoint and the keys"
        ) from e


def _check_places(names: Iterable[str]) -> None:
    """Raise ValueError for names that no file system can hold. Another program may have stored them."""
    taken: dict[str, str] = {}
    for name in names:
        place = inside(name)
        other = taken.setdefault(place, name)
        if other != name and not (other.endswith("/") and name.endswith("/")):
            raise ValueError(f"objects {other!r} and {name!r} would both become {place!r}; select one")


class S3StorageManager(CloudStorageManager):
    """Stores the files of a checkpoint as objects `[prefix/]<storage id>/<relative path>`.

    Without keys, the usual AWS and MinIO environment variables, files and roles are used. Empty directories
    are not stored. `temp_dir` holds checkpoints between training and upload.
    """

    TYPE = "s3"

    def __init__(
        self,
        bucket: str,
        access_key: str | None = None,
        secret_key: str | None = None,
        endpoint_url: str | None = None,
        prefix: str | None = None,
        temp_dir: str | None = None,
    ) -> None:
        if not bucket:
            raise ValueError("an S3 storage needs the name of a bucket")
        self._bucket = bucket
        self._keys = (access_key or None, secret_key or None)
        self._endpoint_url = endpoint_url or os.environ.get("AWS_ENDPOINT_URL") or _AWS
        self._prefix = normalize_prefix(prefix)
        self._temp_dir = temp_dir

    def __getstate__(self) -> dict[str, object]:
        # Another process creates its own connections.
        return {name: value for name, value in self.__dict__.items() if name not in ("_client", "_provider")}

    def get_storage_prefix(self, storage_id: str) -> str:
        """Return the prefix of a checkpoint's object names, without the trailing `/`."""
        return posixpath.join(self._prefix, storage_id)

    def __repr__(self) -> str:
        return f"s3://{self._bucket}/{self._prefix} at {self._endpoint_url}"

    @cached_property
    def _client(self) -> "Minio":
        from determined.storage import s3_transfer

        url = urlparse(self._endpoint_url)
        if url.scheme not in ("http", "https") or not url.netloc or url.path.strip("/"):
            raise ValueError(
                f"checkpoint_storage.endpoint_url must be http://host[:port] or https://host[:port], "
                f"not {self._endpoint_url!r}"
            )
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not region and self._endpoint_url != _AWS:
            region = _REGION_ELSEWHERE
        try:
            return s3_transfer.connect(url.netloc, url.scheme == "https", self._provider, region)
        except ValueError as e:
            raise ValueError(f"checkpoint_storage.endpoint_url {self._endpoint_url!r}: {e}") from e

    @cached_property
    def _provider(self) -> "Provider":
        from determined.storage import s3_transfer

        return s3_transfer.provider(self._keys)

    def _root(self, storage_id: str) -> str:
        return posixpath.join(self._prefix, inside(storage_id)) + "/"

    def _objects(self, storage_id: str) -> Resources:
        root = self._root(storage_id)
        with _naming_the_place(repr(self)):
            objects = list(self._client.list_objects(self._bucket, prefix=root, recursive=True))
        names = {str(o.object_name)[len(root) :]: int(o.size or 0) for o in objects}
        return {name: size for name, size in names.items() if name}

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
        from determined.storage import s3_transfer

        files = {n: s for n, s in only(list_directory(src), paths).items() if not n.endswith("/")}
        root, meter = self._root(dst), Meter(sum(files.values()), progress)
        with _naming_the_place(repr(self)):
            uploaded = s3_transfer.upload(self._client, self._bucket, root, pathlib.Path(src), files, meter)
            if checksums and uploaded:
                s3_transfer.keep_checksums(self._client, self._bucket, self._checksums(dst), uploaded)

    def download(
        self,
        src: str,
        dst: "str | os.PathLike[str]",
        selector: Selector | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        from determined.storage import s3_download, s3_transfer

        names = choose(self.list_resources(src), selector)
        _check_places(names)
        target = pathlib.Path(dst)
        for directory in {name if name.endswith("/") else posixpath.dirname(name) for name in names}:
            (target / directory).mkdir(parents=True, exist_ok=True)
        files = {n: s for n, s in names.items() if not n.endswith("/")}
        root, meter = self._root(src), Meter(sum(files.values()), progress)
        with _naming_the_place(repr(self)):
            sums = s3_transfer.kept_checksums(self._client, self._bucket, self._checksums(src))
            with contextlib.closing(self._streams()) as streams:
                s3_download.download(streams, root, target, files, sums, meter)

    def _streams(self) -> "Streams":
        from determined.storage.s3_streams import Streams

        return Streams(self._client, self._bucket, self._provider)

    def list_resources(self, src: str) -> Resources:
        objects = self._objects(src)
        if not objects:
            raise errors.CheckpointNotFound(f"there is no checkpoint {src} in {self!r}")
        return with_parents(objects)

    def delete(self, tgt: str, globs: Iterable[str]) -> Resources:
        from determined.storage import s3_transfer

        objects = self._objects(tgt)
        matched, left = _globs.split(with_parents(objects), globs)
        # A directory is only a common prefix of names, so without files it does not exist.
        files_left = {name: size for name, size in left.items() if not name.endswith("/")}
        with _naming_the_place(repr(self)):
            s3_transfer.delete(self._client, self._bucket, self._root(tgt), only(objects, matched))
            if not files_left:
                s3_transfer.delete_below(self._client, self._bucket, self._checksums(tgt))
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
        inside(dst)
        return pathlib.Path(tempfile.mkdtemp(prefix="checkpoint-", dir=self._temp_dir))

    def post_store_path(self, src: pathlib.Path, dst: str, paths: Iterable[str] | None = None) -> None:
        self.upload(src, dst, paths)
        shutil.rmtree(src, ignore_errors=True)

    def discard(self, src: pathlib.Path, dst: str) -> None:
        shutil.rmtree(src, ignore_errors=True)
        self.delete_quietly(dst)
