"""Files that are still arriving: under another name until they are whole, and written by one at a time."""

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
    """Return under which name the bytes of a file lie until all have arrived, beside the file.

    `taken` has the names of all files that arrive at the same time.
    """
    folder, slash, last = name.rpartition("/")
    hidden = f".{last}.partial"
    if len(os.fsencode(hidden)) > _LONGEST_NAME_BYTES:
        hidden = f".{hashlib.sha256(os.fsencode(last)).hexdigest()}.partial"
    while folder + slash + hidden in taken:
        hidden = "." + hidden
    return folder + slash + hidden


class PartialFile:
    """A file that is arriving. Another process that brings it to the same place waits until this is over."""

    def __init__(self, path: pathlib.Path, arriving: pathlib.Path) -> None:
        """Open `arriving` with what an earlier transfer left in it; it is to become `path`."""
        self._path = path
        self._arriving = arriving
        self.waited = False
        """Whether somebody else has been bringing it just now."""
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
            # Whoever had it before has given it its name, or thrown it away.
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
        """Say whether an earlier transfer has left anything."""
        return self._status.st_size > 0

    def is_empty(self) -> bool:
        """Say whether nothing has arrived."""
        return os.fstat(self.fd).st_size == 0

    def cut(self, size_bytes: int) -> None:
        """Throw away what an earlier transfer left behind so many bytes."""
        if self._status.st_size > size_bytes:
            os.ftruncate(self.fd, size_bytes)

    def write(self, data: memoryview, offset: int) -> None:
        """Put bytes to their place."""
        try:
            while data:
                written = os.pwrite(self.fd, data, offset)
                data, offset = data[written:], offset + written
        except OSError as error:
            error.filename = str(self._arriving)
            raise

    def finish(self) -> None:
        """Give the file its name, over an older one."""
        if not self._is_in_place(self._status):
            raise OSError(f"{self._arriving} was taken away while {self._path} arrived; transfer it again")
        os.replace(self._arriving, self._path)

    def remove(self) -> None:
        """Throw away what has arrived."""
        if self._is_in_place(self._status):
            self._arriving.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave it to others; what has arrived stays."""
        os.close(self.fd)
