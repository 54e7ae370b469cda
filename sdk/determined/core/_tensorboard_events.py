"""Writes scalars to TensorBoard event files without TensorBoard's library.

A file is a sequence of records (length, checksum, bytes, checksum). Each record is one `Event` protocol
buffer. The field numbers come from TensorFlow's public event.proto and summary.proto.
"""

import itertools
import os
import pathlib
import socket
import struct
import time
from collections.abc import Mapping

_FILE_VERSION = b"brain.Event:2"
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_DOUBLE, _BYTES, _FLOAT = 1, 2, 5
"""Protocol buffer wire types; 0 is a varint."""
_numbers = itertools.count()


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def masked_crc32c(data: bytes) -> int:
    """Return the checksum of a record: CRC-32C, rotated and offset as the format requires."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    # A negative step is stored as its 64-bit complement.
    value &= 0xFFFFFFFFFFFFFFFF
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _text(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | _BYTES]) + _varint(len(content)) + content


def _scalar(tag: str, value: float) -> bytes:
    try:
        number = struct.pack("<f", float(value))
    # The format holds single precision, for which a metric may be too large.
    except OverflowError:
        number = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return _text(1, _text(1, tag.encode()) + bytes([2 << 3 | _FLOAT]) + number)


def _event(wall_time_s: float, step: int, content: bytes) -> bytes:
    when = bytes([1 << 3 | _DOUBLE]) + struct.pack("<d", wall_time_s)
    return when + bytes([2 << 3]) + _varint(step) + content


class EventFile:
    """A new event file in a directory. The directory is created if needed."""

    def __init__(self, directory: pathlib.Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        now = time.time()
        # TensorBoard reads the files with `tfevents` in their names, ordered by name.
        name = f"events.out.tfevents.{int(now):010}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self.path = directory / name
        self._file = self.path.open("wb")
        self._record(_event(now, 0, _text(3, _FILE_VERSION)))

    def write(self, wall_time_s: float, step: int, scalars: Mapping[str, float]) -> None:
        """Append the scalars of one step, by tag."""
        values = b"".join(_scalar(tag, value) for tag, value in scalars.items())
        self._record(_event(wall_time_s, step, _text(5, values)))

    def flush(self) -> None:
        """Make written data visible to readers of the file."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _record(self, data: bytes) -> None:
        length = struct.pack("<Q", len(data))
        self._file.write(length + struct.pack("<I", masked_crc32c(length)))
        self._file.write(data + struct.pack("<I", masked_crc32c(data)))
