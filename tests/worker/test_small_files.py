"""Small files are read and written whole, however the system divides that."""

import os

from worker.shim import small_files
from worker.shim.small_files import read_file, write_file


def test_a_file_is_replaced_whole(tmp_path, monkeypatch):
    path = str(tmp_path / "file")
    write_file(path, b"what was there before, which is longer")
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:3]))
    write_file(path, b"0123456789")
    monkeypatch.setattr(small_files, "READ_BYTES", 4)
    assert read_file(path) == b"0123456789"


def test_no_file_stays_open(tmp_path):
    before = os.listdir("/proc/self/fd")
    write_file(str(tmp_path / "file"), b"text")
    assert read_file("/proc/self/cmdline")
    assert len(os.listdir("/proc/self/fd")) == len(before)
