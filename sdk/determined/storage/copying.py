"""Copies of files between directories: in the kernel where it can, whole or not at all."""

import errno
import os
import pathlib
import shutil
from functools import partial
from typing import IO

from determined.storage.parallel import run_all
from determined.storage.partial import finish, partial_path
from determined.storage.progress import Meter
from determined.storage.tree import Resources

PARALLEL_FILES = 4
_STEP_BYTES = 32 << 20
_NOT_IN_THE_KERNEL = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)


def copy_tree(src: pathlib.Path, dst: pathlib.Path, names: Resources, meter: Meter) -> None:
    """Copy `names` of `src` into `dst`, with their times of modification."""
    dst.mkdir(parents=True, exist_ok=True)
    directories = sorted(name for name in names if name.endswith("/"))
    files = sorted(names.keys() - set(directories))
    for name in {*directories, *(os.path.dirname(name) for name in files)}:
        (dst / name).mkdir(parents=True, exist_ok=True)
    threads = min(PARALLEL_FILES, len(files))
    run_all((partial(copy_file, src / name, dst / name, meter) for name in files), threads)
    for name in reversed(directories):
        shutil.copystat(src / name, dst / name)


def copy_file(src: pathlib.Path, dst: pathlib.Path, meter: Meter) -> None:
    """Copy one file; until it is whole nothing has its name."""
    arriving = partial_path(dst)
    try:
        with open(src, "rb", buffering=0) as source, open(arriving, "wb") as target:
            _copy_bytes(source, target, meter)
        shutil.copystat(src, arriving)
        finish(dst)
    except BaseException as error:
        arriving.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename, error.filename2 = str(src), str(dst)
        raise


def _copy_bytes(source: IO[bytes], target: IO[bytes], meter: Meter) -> None:
    copy_range, copied = getattr(os, "copy_file_range", None), 0
    while copy_range is not None:
        try:
            moved = copy_range(source.fileno(), target.fileno(), _STEP_BYTES)
        except OSError as error:
            if error.errno not in _NOT_IN_THE_KERNEL:
                raise
            break
        if not moved:
            break
        copied += moved
        meter.add(moved)
    # What the kernel did not take: all, nothing, or files whose size it does not know.
    source.seek(copied)
    target.seek(copied)
    while chunk := source.read(1 << 20):
        target.write(chunk)
        meter.add(len(chunk))
