"""Partially transferred files: kept under a temporary name and written by one process at a time."""

import errno
import hashlib
import logging
import os
import pathlib
from collections.abc import Container

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("determined.storage")

_LONGEST_NAME_BYTES = 255
_NO_LOCKS_HERE = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


def partial_name(name: str, taken: Container[str] = ()) -> str:
    """Return the temporary name of a file, in the same directory, used until all of its bytes have arrived.

    `taken` contains the names of all files in the same transfer.
    """
    folder, slash, last = name.rpartition("/")
    hidden = f".{last}.partial"
    if len(os.fsencode(hidden)) > _LONGEST_NAME_BYTES:
        hidden = f".{hashlib.sha256(os.fsencode(last)).hexdigest()}.partial"
    while folder + slash + hidden in taken:
        hidden = "." + hidden
    return folder + slash + hidden


class PartialFile:
    """A file being transferred.

    Another process that transfers it to the same path waits until this is done.
    """

    def __init__(self, path: pathlib.Path, arriving: pathlib.Path) -> None:
        """Open `arriving`, including data from an earlier transfer. When complete it is renamed to `path`."""
        self._path = path
        self._arriving = arriving
        self.waited = False
        """Whether another process was transferring the file when it was opened."""
        self.fd, self._status = self._open()

    def _open(self) -> tuple[int, os.stat_result]:
        while True:
            fd = os.open(self._arriving, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                self._lock(fd)
                status = os.fstat(fd)
                if self._is_in_place(status):
                    return fd, status
            except BaseException:
                os.close(fd)
                raise
            # The previous owner has renamed or deleted the file in the meantime.
            os.close(fd)

    def _lock(self, fd: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info("waiting for another process to finish downloading %s", self._path)
            self.waited = True
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                raise

    def _is_in_place(self, status: os.stat_result) -> bool:
        try:
            return os.path.samestat(status, os.stat(self._arriving))
        except FileNotFoundError:
            return False

    def begun(self) -> bool:
        """Return whether an earlier transfer has left any data."""
        return self._status.st_size > 0

    def is_empty(self) -> bool:
        """Return whether no data has arrived."""
        return os.fstat(self.fd).st_size == 0

    def cut(self, size_bytes: int) -> None:
        """Truncate data from an earlier transfer to this size."""
        if self._status.st_size > size_bytes:
            os.ftruncate(self.fd, size_bytes)

    def write(self, data: memoryview, offset: int) -> None:
        """Write bytes at an offset."""
        try:
            while data:
                written = os.pwrite(self.fd, data, offset)
                data, offset = data[written:], offset + written
        except OSError as error:
            error.filename = str(self._arriving)
            raise

    def finish(self) -> None:
        """Rename the file to its final name, replacing any older file."""
        if not self._is_in_place(self._status):
            raise OSError(f"{self._arriving} was taken away while {self._path} arrived; transfer it again")
        os.replace(self._arriving, self._path)

    def remove(self) -> None:
        """Delete the partial file."""
        if self._is_in_place(self._status):
            self._arriving.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the file for other processes. Its data is kept."""
        os.close(self.fd)
