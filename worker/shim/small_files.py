"""Reads and writes small files by system calls alone.

Shims and scripts are forks. What they touch of the memory that they share with their template is copied
first, and Python's file objects touch a hundred pages: that takes longer than what is done with the file.
"""

from __future__ import annotations

import os

READ_BYTES = 16 * 1024


def read_file(path: str) -> bytes:
    """Return what is in a file. Raises `OSError`."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = part = os.read(file, READ_BYTES)
        # Until nothing more comes: files of /proc say nothing of their size.
        while part:
            part = os.read(file, READ_BYTES)
            content += part
        return content
    finally:
        os.close(file)


def write_file(path: str, content: bytes) -> None:
    """Make a file with this content, in place of any that is there. Raises `OSError`."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        # A disk that is nearly full takes a part.
        while content:
            content = content[os.write(file, content) :]
    finally:
        os.close(file)
