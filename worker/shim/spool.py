"""The spool: output records in files, written by the shim and read by the worker."""

from __future__ import annotations

import errno
import os
import struct
import time

HEADER = struct.Struct("<QBI")
"""Time in microseconds since the epoch, stream, number of bytes of text that follow."""
STDOUT, STDERR, NOTICE = 1, 2, 3
SEGMENT_BYTES = 8 * 1024 * 1024
LIMIT_BYTES = 2 * 1024 * 1024 * 1024
"""Maximum output that is kept while no worker fetches it."""
SUFFIX = ".log"


def segment_name(position: int) -> str:
    """The file that begins at a position. Positions count the bytes of all records of a run."""
    return f"{position:020d}{SUFFIX}"


def segments(folder: str) -> list[int]:
    """The start positions of the segments in a folder, ascending."""
    names = (name.removesuffix(SUFFIX) for name in os.listdir(folder) if name.endswith(SUFFIX))
    return sorted(int(name) for name in names if name.isdigit())


class Spool:
    """Appends records to segments.

    Lines that cannot be stored are dropped and counted; once there is space again, a notice states the
    number.
    """

    def __init__(
        self, folder: str, segment_bytes: int = SEGMENT_BYTES, limit_bytes: int = LIMIT_BYTES
    ) -> None:
        self.lost_lines = 0
        self.max_bytes = 0
        """Maximum output of the whole run, whether fetched or not; 0: no limit."""
        self._is_cut = False
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._limit_bytes = limit_bytes
        self._file = -1
        self._start = self._end = 0
        self._unreported_lines = 0
        self._reason = ""

    def append(self, stream: int, lines: list[bytes]) -> None:
        """Store lines of one stream with the current time. Never raises because of the disk."""
        if self.max_bytes and self._end >= self.max_bytes and stream != NOTICE:
            self.lost_lines += len(lines)
            if not self._is_cut:
                self._is_cut = True
                size = f"{self.max_bytes >> 20} MiB"
                text = (
                    f"the output of this run has reached {size}, and the rest of it is not kept: print less"
                )
                self.append(NOTICE, [text.encode()])
            return
        records = _records(stream, lines)
        if self._unreported_lines:
            text = f"{self._unreported_lines} lines of output were lost here: {self._reason}"
            records = _records(NOTICE, [text.encode()]) + records
        try:
            self._write(records)
        except OSError as error:
            self._unreported_lines += len(lines)
            self.lost_lines += len(lines)
            self._reason = error.strerror or str(error)
        else:
            self._unreported_lines = 0

    def close(self) -> None:
        """Record what was lost, if there is space by now."""
        if self._unreported_lines:
            self.append(NOTICE, [])

    def _write(self, records: bytes) -> None:
        if self._file < 0 or self._end - self._start >= self._segment_bytes:
            self._roll()
        rest = memoryview(records)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self._end - self._start)
            os.lseek(self._file, self._end - self._start, os.SEEK_SET)
            raise
        self._end += len(records)

    def _roll(self) -> None:
        kept_bytes = self._end - min(segments(self._folder), default=self._end)
        if kept_bytes >= self._limit_bytes:
            raise OSError(errno.EDQUOT, f"{kept_bytes} bytes wait already for the worker")
        path = os.path.join(self._folder, segment_name(self._end))
        fresh = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        if self._file >= 0:
            os.close(self._file)
        self._file, self._start = fresh, self._end


def _records(stream: int, lines: list[bytes]) -> bytes:
    now = time.time_ns() // 1000
    return b"".join([HEADER.pack(now, stream, len(line)) + line for line in lines])
