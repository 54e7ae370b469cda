"""Frees what tasks left in the host's memory when they ended: nobody else would, until the host restarts."""

from __future__ import annotations

import ctypes
from pathlib import Path

import structlog

from services.kit.host_processes import all_pids
from worker.workdir import remove_of_another

FOLDER = Path("/dev/shm")  # noqa: S108 - what is there is removed by its owner, and not used
SEGMENTS = Path("/proc/sysvipc/shm")
IPC_RMID = 0

log = structlog.get_logger()


def free(uid: int) -> None:
    """Remove a user's files in `/dev/shm` and its System V segments, if no process of it is left here."""
    # Listed before the processes are looked at: what a later process makes is not among these.
    files, segments = _files(uid), _segments(uid)
    if not (files or segments) or _has_processes(uid):
        return
    for path in files:
        try:
            # A user's own files: as root, with no link followed.
            is_folder = path.is_dir() and not path.is_symlink()
            remove_of_another(path) if is_folder else path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("shared_memory.left", path=str(path), error=str(error))
    libc = ctypes.CDLL(None)
    for id in segments:
        libc.shmctl(id, IPC_RMID, None)
    log.info("shared_memory.freed", user=uid, files=len(files), segments=len(segments))


def _files(uid: int) -> list[Path]:
    try:
        return [path for path in FOLDER.iterdir() if _owner(path) == uid]
    except OSError:
        return []


def _owner(path: Path) -> int:
    try:
        return path.lstat().st_uid
    except OSError:
        # It went meanwhile.
        return -1


def _segments(uid: int) -> list[int]:
    """Ids of its segments, by the columns that the first line of the file names."""
    try:
        names, *lines = (line.split() for line in SEGMENTS.read_text().splitlines())
    except (OSError, ValueError):
        return []
    rows = (dict(zip(names, line, strict=False)) for line in lines)
    return [int(row["shmid"]) for row in rows if int(row["uid"]) == uid]


def _has_processes(uid: int) -> bool:
    return any(uid in _users(pid) for pid in all_pids())


def _users(pid: int) -> set[int]:
    """The real, effective and saved user of a process; none if it is gone."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            line = next((line for line in file if line.startswith(b"Uid:")), b"")
    except OSError:
        return set()
    return set(map(int, line.split()[1:]))
