"""What others see of a process: its command line and environment, as shown by `ps` and /proc."""

from __future__ import annotations

import ctypes
import os
import struct

from worker.shim.small_files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PR_SET_MM, PR_SET_MM_MAP = 35, 14
_LAYOUT = struct.Struct("=11QQIi")
"""`struct prctl_mm_map`: eleven addresses, auxv, its size, descriptor of the executable."""
_libc = ctypes.CDLL(None, use_errno=True)
_libc.sbrk.restype = ctypes.c_void_p


def set_title(words: Sequence[str], env: Mapping[str, str]) -> None:
    """Make the kernel show these. Raises `OSError` if it cannot."""
    line = b"".join(os.fsencode(word) + b"\0" for word in words)
    variables = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in env.items())
    text = ctypes.create_string_buffer(line + variables, len(line) + len(variables))
    # Never freed: the kernel reads it on every look, also while the interpreter takes itself apart, and would
    # show everybody what is in that memory next.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(text))
    at = ctypes.addressof(text)
    middle, end = at + len(line), at + len(line) + len(variables)
    field = _StatFields()
    addresses = [field(26), field(27), field(45), field(46), field(47), _libc.sbrk(0), field(28)]
    shown = _LAYOUT.pack(*addresses, at, middle, middle, end, 0, 0, -1)
    if _libc.prctl(PR_SET_MM, PR_SET_MM_MAP, ctypes.c_char_p(shown), ctypes.c_ulong(len(shown)), 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel does not let a process change its command line")


def current_command_line() -> list[str]:
    """The command line that is shown."""
    return [os.fsdecode(word) for word in read_file("/proc/self/cmdline").split(b"\0")[:-1]]


class _StatFields:
    """Fields of /proc/self/stat, numbered as in proc(5)."""

    def __init__(self) -> None:
        self._after_name = read_file("/proc/self/stat").rpartition(b")")[2].split()

    def __call__(self, number: int) -> int:
        return int(self._after_name[number - 3])
