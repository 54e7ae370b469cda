"""A run's working directory: the experiment's code, unpacked twice.

The script runs in one copy and may change it; checkpoints save the other one as `code/` (core API spec,
section 3, step 1).
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import itertools
import os
import shutil
import subprocess
import tarfile
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

LIMIT_BYTES = 1024 * 1024 * 1024
"""Maximum unpacked size of an archive, in bytes; clients pack at most a tenth of it."""
MAX_MEMBERS = 200_000
MAX_DEPTH = 200
"""Maximum nesting of folders: code that walks them recurses once per level."""
CHUNK_BYTES = 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class BadContext(ValueError):
    """The archive with the experiment's code cannot be unpacked; the text is for the user."""


class _BoundedReader:
    """An archive of which only a small part is read into memory at a time.

    A header may claim to be gigabytes long, and tarfile reads it as a whole before returning it.
    """

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= 2 * CHUNK_BYTES:
            raise BadContext(f"a header in the archive with the experiment's code has {size:,} bytes")
        return self._file.read(size)


def _bounded_reader(file: gzip.GzipFile) -> IO[bytes]:
    return cast(IO[bytes], _BoundedReader(file))


def unpack(archive: Path, workdir: Path, pristine: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Unpack a tar.gz of files and folders into two fresh directories.

    Nothing is written outside them. Their previous content is removed, so this may be repeated. Raises
    `BadContext`, or `OSError` if the disk is full or fails.
    """
    for folder in (workdir, pristine):
        remove(folder)
    pristine.mkdir(parents=True)
    try:
        with (
            gzip.open(archive) as unzipped,
            tarfile.open(fileobj=_bounded_reader(unzipped), mode="r:") as tar,
        ):
            _extract(tar, pristine, limit_bytes)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadContext(f"the archive with the experiment's code is damaged: {error}") from error
    workdir.parent.mkdir(parents=True, exist_ok=True)
    # A copy, because scripts change their working directory, and checkpoints contain the code as submitted.
    shutil.copytree(pristine, workdir)


def remove(folder: Path) -> None:
    """Delete a directory tree, even if a script removed its permissions.

    Does nothing if it does not exist.
    """
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    # These commands handle any depth and paths longer than a system call accepts, and follow no links. Root
    # needs no chmod.
    for words in ([] if not os.geteuid() else [["chmod", "-R", "u+rwx"]]) + [["rm", "-rf"]]:
        program = shutil.which(words[0]) or words[0]
        subprocess.run([program, *words[1:], "--", str(folder)], check=False, capture_output=True)
    if folder.exists():
        raise OSError(f"{folder} cannot be removed; remove it by hand")


def remove_of_another(folder: Path) -> None:
    """As root, delete a directory tree of another user, even while that user's processes fill it again.

    Whoever owns a directory, and has it open, can add to it as fast as it is emptied. So each becomes root's
    before it is listed, and nothing more comes. Those below it are moved up, so that no depth matters.
    """
    held = os.open(folder, _FOLDER)
    try:
        os.fchown(held, 0, 0)
        os.fchmod(held, 0o700)
        numbers = itertools.count()
        # A listing may skip entries if others are removed meanwhile.
        while _remove_listed(held, numbers):
            continue
    except OSError as error:
        raise OSError(f"{folder} cannot be removed: {error}; remove it by hand") from error
    finally:
        os.close(held)
    folder.rmdir()


def _remove_listed(held: int, numbers: Iterator[int]) -> bool:
    """Remove what is listed of a directory, and move up what is two levels below. Whether anything was."""
    was_listed = False
    with os.scandir(held) as entries:
        for entry in entries:
            was_listed = True
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=held)
                continue
            inner = os.open(entry.name, _FOLDER, dir_fd=held)
            try:
                os.fchown(inner, 0, 0)
                os.fchmod(inner, 0o700)
                _move_up(inner, held, numbers)
            finally:
                os.close(inner)
            try:
                os.rmdir(entry.name, dir_fd=held)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
    return was_listed


def _move_up(inner: int, outer: int, numbers: Iterator[int]) -> None:
    unique = uuid.uuid4().hex
    with os.scandir(inner) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                name = f"{unique}-{next(numbers)}"
                os.rename(entry.name, name, src_dir_fd=inner, dst_dir_fd=outer)
            else:
                os.unlink(entry.name, dir_fd=inner)


def _extract(tar: tarfile.TarFile, target: Path, limit_bytes: int) -> None:
    size = 0
    for count, member in enumerate(tar):
        if count >= MAX_MEMBERS:
            raise BadContext(f"the experiment's code has more than {MAX_MEMBERS:,} files and folders")
        # Every member, and before it is opened: an archive may come from anybody who may submit.
        name = _safe_name(member)
        # Counted from the headers, before a byte is written.
        size += member.size
        if size > limit_bytes:
            raise BadContext(f"the experiment's code unpacks to more than {limit_bytes:,} bytes")
        path = target / name
        try:
            _extract_one(tar, member, path)
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            raise BadContext(f"'{member.name}' is both a file and a folder") from error


def _safe_name(member: tarfile.TarInfo) -> PurePosixPath:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        raise BadContext(f"'{member.name}' leads out of the working directory; the code was not unpacked")
    if len(name.parts) > MAX_DEPTH:
        raise BadContext(f"'{member.name[:80]}…' is nested more than {MAX_DEPTH} folders deep")
    if not (member.isfile() or member.isdir()):
        raise BadContext(
            f"'{member.name}' is neither a file nor a folder; pack the file or folder itself instead"
        )
    return name


def _extract_one(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        # The owner may always enter and delete, whatever was packed. No set-user-id bits.
        path.chmod(member.mode & 0o777 | 0o700)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    with open(path, "wb") as file:
        if source is not None:
            shutil.copyfileobj(source, file, CHUNK_BYTES)
    path.chmod(member.mode & 0o777 | 0o600)
    os.utime(path, (member.mtime, member.mtime))
