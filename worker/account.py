"""Chooses the account that tasks run as: their owner's linked account, or else the worker's default.

Only a worker that runs as root can choose. Otherwise tasks run as the worker's own user and can read
everything that it can read.
"""

from __future__ import annotations

import contextlib
import ctypes
import grp
import os
import pwd
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from det_contracts.events.gateway import AgentUser
from det_contracts.expconf import is_secret_name

MAX_TMPDIR_LENGTH = 70
"""A longer one leaves no room for the names of sockets inside, which Linux limits to 107 bytes."""
_PERSONAL_PREFIXES = (
    "HOME",
    "USER",
    "LOGNAME",
    "MAIL",
    "OLDPWD",
    "PWD",
    "TMPDIR",
    "SUDO_",
    "SSH_",
    "XDG_",
    "DBUS_",
)


class BadAccount(ValueError):
    """No task can run as this account; the text says why and what to do."""


class Account(msgspec.Struct, frozen=True):
    """A user of this host other than the platform's own."""

    uid: int
    gid: int
    name: str
    home: str = ""
    """Empty if the user has none."""

    def __str__(self) -> str:
        return f"'{self.name}' ({self.uid}:{self.gid})"


class Accounts:
    """Chooses the account of each task. `default` is the setting. Raises `BadAccount` if it is invalid."""

    def __init__(self, default: str) -> None:
        self._can_choose = os.geteuid() == 0
        if default and not self._can_choose:
            raise BadAccount(
                f"STEADFAST_WORKER_RUN_AS={default}: only a worker that runs as root can start tasks as "
                "another user; run the worker as root, or as that user"
            )
        self.default = parse_account(default) if default else None

    def choose(self, agent_user: AgentUser | None) -> Account | None:
        """The account that a task runs as; None for the worker's own. Raises `BadAccount`."""
        if agent_user is None or not self._can_choose:
            return self.default
        return linked_account(agent_user)

    @property
    def warning(self) -> str:
        """A warning for operators about how tasks run here; empty if there is none."""
        if self.default is not None:
            return ""
        whose = "root" if self._can_choose else "the user of the worker"
        return (
            f"tasks run as {whose} and can read the keys of the cluster: only run scripts that you trust, or "
            "start the worker as root with STEADFAST_WORKER_RUN_AS (docs/guides/hardening.md)"
        )


def parse_account(text: str) -> Account:
    """Parse the setting `user`, `user:group` or `uid:gid`. Raises `BadAccount`."""
    user, colon, group = text.partition(":")
    try:
        entry = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
    except KeyError:
        entry = None
    if entry is None and not (user.isdigit() and group):
        raise BadAccount(f"there is no user '{user}' on this host: make one, or write UID:GID")
    uid = entry.pw_uid if entry is not None else int(user)
    gid = _group(group) if colon else _primary_group(entry)
    return _require_unprivileged(
        Account(uid, gid, entry.pw_name if entry is not None else f"uid-{uid}", _home_directory(entry))
    )


def linked_account(user: AgentUser) -> Account:
    """The account that a user of the cluster is linked with. Raises `BadAccount`."""
    try:
        entry: pwd.struct_passwd | None = pwd.getpwuid(user.uid)
    except (KeyError, OverflowError):
        entry = None
    return _require_unprivileged(
        Account(user.uid, user.gid, user.user or f"uid-{user.uid}", _home_directory(entry))
    )


def _require_unprivileged(account: Account) -> Account:
    if not (0 < account.uid < 2**32 - 1 and 0 < account.gid < 2**32 - 1):
        raise BadAccount(
            f"tasks do not run as {account}: neither user nor group may be root's (0). Link the owner with "
            "another account: det user link-with-agent-user"
        )
    return account


def check_usable(path: Path, account: Account) -> None:
    """Check that the account can reach a file. Call this inside `file_access_as`. Raises `BadAccount`."""
    try:
        path.stat()
    except OSError as error:
        raise BadAccount(
            f"the task runs as {account}, and that user cannot reach {path}: "
            f"{error.strerror or error}. Let others enter the folders above it (chmod o+x), or move it with "
            "STEADFAST_WORKER_PYTHON or STEADFAST_WORKER_TASKS"
        ) from None


def max_processes(setting: int) -> int:
    """The limit that `STEADFAST_WORKER_PROCESSES` means on this host; 0: none.

    A process that multiplies without end then takes no place that other users and the platform need.
    """
    if setting >= 0:
        return setting
    try:
        return (
            min(int(Path("/proc/sys/kernel", name).read_text()) for name in ("pid_max", "threads-max")) // 4
        )
    except (OSError, ValueError):
        return 0


def _group(text: str) -> int:
    try:
        return int(text) if text.isdigit() else grp.getgrnam(text).gr_gid
    except KeyError:
        raise BadAccount(f"there is no group '{text}' on this host: make one, or write UID:GID") from None


def _primary_group(entry: pwd.struct_passwd | None) -> int:
    return entry.pw_gid if entry is not None else 0


def _home_directory(entry: pwd.struct_passwd | None) -> str:
    """The home directory, if the user owns it."""
    if entry is None:
        return ""
    try:
        return entry.pw_dir if os.stat(entry.pw_dir).st_uid == entry.pw_uid else ""
    except OSError:
        return ""


def variables(account: Account, inherited: Mapping[str, str], task_dir: Path) -> dict[str, str]:
    """The part of the worker's environment that a task of another user gets: no secrets, nothing personal."""
    passed = {name: value for name, value in inherited.items() if not _is_private(name)}
    passed |= {
        "HOME": account.home or str(task_dir / "workdir"),
        "USER": account.name,
        "LOGNAME": account.name,
    }
    folder = str(task_dir / "tmp")
    return passed | ({"TMPDIR": folder} if len(folder) <= MAX_TMPDIR_LENGTH else {})


def _is_private(name: str) -> bool:
    return name.upper().startswith(_PERSONAL_PREFIXES) or is_secret_name(name)


@contextlib.contextmanager
def file_access_as(account: Account | None) -> Iterator[None]:
    """Let this thread, and no other, open and create files with the rights of an account.

    For operations that the task will repeat itself, so the worker's own rights are not lent to it.
    """
    if account is None:
        yield
        return
    libc = ctypes.CDLL(None)
    _set_file_ids(libc, account.uid, account.gid)
    try:
        yield
    finally:
        # Reset the user first: only root may set the group.
        libc.setfsuid(ctypes.c_uint(0))
        libc.setfsgid(ctypes.c_uint(0))


def _set_file_ids(libc: ctypes.CDLL, uid: int, gid: int) -> None:
    libc.setfsgid(ctypes.c_uint(gid))
    libc.setfsuid(ctypes.c_uint(uid))
    # The call does not report failure. An invalid argument makes it return the current value.
    if libc.setfsuid(ctypes.c_uint(2**32 - 1)) != uid:
        raise PermissionError(
            f"this process may not open files as user id {uid}: the worker needs to be root"
        )
