"""Atomic file copies between directories, done by the kernel if possible."""

import errno
import os
import pathlib
import shutil
import stat
from collections.abc import Callable
from functools import partial

from determined.storage.listing import Resources
from determined.storage.parallel import run_all
from determined.storage.partial import PartialFile, partial_name
from determined.storage.progress import Meter

PARALLEL_FILES = 4
_STEP_BYTES = 32 << 20
_CHUNK_BYTES = 1 << 20
_NOT_IN_THE_KERNEL = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)
Opener = Callable[[str, int], int]
"""Opens a file, as for `open`."""


def copy_tree(
    src: pathlib.Path, dst: pathlib.Path, names: Resources, meter: Meter, opener: Opener | None = None
) -> None:
    """Copy `names` from `src`, which `opener` opens, to `dst`, preserving modification times."""
    dst.mkdir(parents=True, exist_ok=True)
    directories = sorted(name for name in names if name.endswith("/"))
    files = sorted(names.keys() - set(directories))
    for name in {*directories, *(os.path.dirname(name) for name in files)}:
        (dst / name).mkdir(parents=True, exist_ok=True)

    def copy(name: str) -> None:
        copy_file(src / name, dst / name, dst / partial_name(name, names), meter, opener)

    run_all((partial(copy, name) for name in files), min(PARALLEL_FILES, len(files)))
    # Last and deepest first: creating a file changes the time of its directory.
    for name in reversed(directories):
        shutil.copystat(src / name, dst / name)


def copy_file(
    src: pathlib.Path,
    dst: pathlib.Path,
    arriving: pathlib.Path,
    meter: Meter,
    opener: Opener | None = None,
) -> None:
    """Copy one file via `arriving`. The final name appears only once the file is complete."""
    try:
        with open(src, "rb", buffering=0, opener=opener) as source:
            target = PartialFile(dst, arriving)
            try:
                _copy(source.fileno(), target, meter)
            except BaseException:
                target.remove()
                raise
            finally:
                target.close()
    except OSError as error:
        if error.filename is None:
            error.filename, error.filename2 = str(src), str(dst)
        raise


def _copy(source: int, target: PartialFile, meter: Meter) -> None:
    # Unlike a download, a copy has no checksums that tell which of the bytes there are right.
    target.cut(0)
    _copy_bytes(source, target, meter)
    status = os.fstat(source)
    os.utime(target.fd, ns=(status.st_atime_ns, status.st_mtime_ns))
    target.finish()
    # Set the mode last: a process waiting for this copy must be able to open it.
    os.fchmod(target.fd, stat.S_IMODE(status.st_mode))


def _copy_bytes(source: int, target: PartialFile, meter: Meter) -> None:
    copy_range, copied = getattr(os, "copy_file_range", None), 0
    while copy_range is not None:
        try:
            moved = copy_range(source, target.fd, _STEP_BYTES)
        except OSError as error:
            if error.errno not in _NOT_IN_THE_KERNEL:
                raise
            break
        if not moved:
            break
        copied += moved
        meter.add(moved)
    # Copy what the kernel did not: everything, nothing, or the rest of files whose size it does not know.
    while chunk := os.pread(source, _CHUNK_BYTES, copied):
        target.write(memoryview(chunk), copied)
        copied += len(chunk)
        meter.add(len(chunk))
