"""A run's working directory: the experiment's code, unpacked twice.

The script runs in one copy and may change it; checkpoints save the other as `code/`
(core API spec, section 3, step 1).
"""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import subprocess
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, cast

LIMIT_BYTES = 1024 * 1024 * 1024
"""Most bytes that an archive may unpack to; what clients pack is a tenth of it."""
MOST_MEMBERS = 200_000
DEEPEST = 200
"""Folders in folders: what goes through them calls itself for each."""
CHUNK_BYTES = 1024 * 1024


class BadContext(ValueError):
    """The archive with the experiment's code cannot be unpacked; the text is for the user."""


class _Unzipped:
    """An archive of which nobody takes more than a little into memory at once.

    A header may say of itself that it goes on for gigabytes, and is read whole before anybody sees it.
    """

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= 2 * CHUNK_BYTES:
            raise BadContext(f"a header in the archive with the experiment's code has {size:,} bytes")
        return self._file.read(size)


def _in_parts(file: gzip.GzipFile) -> IO[bytes]:
    return cast(IO[bytes], _Unzipped(file))


def unpack(archive: Path, workdir: Path, pristine: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Unpack a tar.gz of files and folders into two fresh directories.

    Nothing is written outside of them. What was there before goes away, so it may be repeated.
    Raises `BadContext`, or OSError when the disk does not take it.
    """
    for folder in (workdir, pristine):
        remove(folder)
    pristine.mkdir(parents=True)
    try:
        with gzip.open(archive) as unzipped, tarfile.open(fileobj=_in_parts(unzipped), mode="r:") as tar:
            _extract(tar, pristine, limit_bytes)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadContext(f"the archive with the experiment's code is damaged: {error}") from error
    workdir.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(pristine, workdir)


def remove(folder: Path) -> None:
    """Delete a directory and all in it, also where a script took its own rights away; absent is fine."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    # These go down to any depth, also where a path is longer than a system call takes, and follow no links.
    # Root needs no rights there.
    for words in ([] if not os.geteuid() else [["chmod", "-R", "u+rwx"]]) + [["rm", "-rf"]]:
        program = shutil.which(words[0]) or words[0]
        subprocess.run([program, *words[1:], "--", str(folder)], check=False, capture_output=True)
    if folder.exists():
        raise OSError(f"{folder} cannot be removed; remove it by hand")


def _extract(tar: tarfile.TarFile, target: Path, limit_bytes: int) -> None:
    size = 0
    for count, member in enumerate(tar):
        if count >= MOST_MEMBERS:
            raise BadContext(f"the experiment's code has more than {MOST_MEMBERS:,} files and folders")
        name = _safe_name(member)
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
    if len(name.parts) > DEEPEST:
        raise BadContext(f"'{member.name[:80]}…' lies more than {DEEPEST} folders deep")
    if not (member.isfile() or member.isdir()):
        raise BadContext(f"'{member.name}' is neither a file nor a folder; pack what it stands for instead")
    return name


def _extract_one(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(member.mode & 0o777 | 0o700)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    with open(path, "wb") as file:
        if source is not None:
            shutil.copyfileobj(source, file, CHUNK_BYTES)
    path.chmod(member.mode & 0o777 | 0o600)
    os.utime(path, (member.mtime, member.mtime))
