"""Changes the user of a command's process before the command is executed."""

from __future__ import annotations

import ctypes
import errno
import os
import resource

# `os.execvpe` loads this module, which the command's user may be unable to read if the library is root's.
import warnings  # noqa: F401

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PR_SET_NO_NEW_PRIVS = 38
JOIN_SESSION_KEYRING = 1
KEYCTL = {"x86_64": 250, "aarch64": 219}
"""The number of the system call by kind of machine; the C library has no function for it."""
CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
UMASK = 0o022
"""Others may read, but not change, what a task leaves outside its own folder, such as checkpoints."""


class RunAs:
    """A user, and the mounts that only this process sees."""

    def __init__(
        self, uid: int, gid: int, binds: Sequence[Sequence[str]] = (), max_processes: int = 0
    ) -> None:
        self._uid, self._gid, self._binds = uid, gid, binds
        self._max_processes = max_processes
        self._libc = ctypes.CDLL(None, use_errno=True)

    def drop_rights(self, *fds: int) -> None:
        """Give up all rights of the shim permanently. `fds` are descriptors that the command may reopen."""
        if self._binds:
            self._mount()
        for fd in fds:
            # Opening /dev/stdout requires the rights of the pipe behind it.
            os.fchown(fd, self._uid, self._gid)
        os.umask(UMASK)
        self._leave_keyring()
        if self._max_processes:
            resource.setrlimit(resource.RLIMIT_NPROC, (self._max_processes, self._max_processes))
        os.setgroups([])
        os.setresgid(self._gid, self._gid, self._gid)
        os.setresuid(self._uid, self._uid, self._uid)
        # From here on, no set-user-id program and no file capability can raise its rights again.
        self._check(self._libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")

    def _leave_keyring(self) -> None:
        """Start a keyring of its own. The shim's is that of the worker, and of all tasks that it starts."""
        number = keyctl_number()
        if number is None or self._libc.syscall(number, JOIN_SESSION_KEYRING, None, 0, 0, 0) > 0:
            return
        # Where the kernel keeps no keys, or this container may not use them, tasks may not either.
        if (error := ctypes.get_errno()) not in (errno.ENOSYS, errno.EPERM):
            raise OSError(error, os.strerror(error), "keyctl")

    def _mount(self) -> None:
        self._check(self._libc.unshare(CLONE_NEWNS), "unshare")
        self._check(self._libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "/")
        for source, target in self._binds:
            folder = self._open_as_user(source)
            opened = f"/proc/self/fd/{folder}".encode()
            self._check(self._libc.mount(opened, os.fsencode(target), None, MS_BIND | MS_REC, None), target)
            os.close(folder)

    def _open_as_user(self, source: str) -> int:
        """Open the folder as this user, because a mount would bypass parents that are closed to the user."""
        self._libc.setfsgid(self._gid)
        self._libc.setfsuid(self._uid)
        try:
            return os.open(source, os.O_PATH | os.O_DIRECTORY)
        finally:
            self._libc.setfsuid(0)
            self._libc.setfsgid(0)

    def _check(self, result: int, what: str) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), what)


def keyctl_number() -> int | None:
    """The number of the system call `keyctl` on this machine, if it is known."""
    return KEYCTL.get(os.uname().machine)
