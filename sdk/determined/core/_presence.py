"""Shows that a rank which was started by hand runs, before it connects to the others.

A launcher ends all ranks when one dies. Without one, nobody sees the death of a rank that never connected. So
each rank of a host locks a file of its own as soon as it imports `determined`. The operating system releases
the lock when the process ends, however it ends: a file that is there and not locked belongs to a dead rank.
"""

import fcntl
import hashlib
import os
import tempfile
import time
from pathlib import Path

RECENT_S = 30.0
"""A file that is older than this process by more was left by an earlier job with the same variables."""
_STARTED_AT = time.time()
_OF_A_JOB = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "INTER_TRAIN_PROCESS_COMM_PORT_1")
_lock: int | None = None
"""The open file of this rank. Closing any other descriptor of that file here would release the lock."""


def announce() -> None:
    """Show that this rank runs. Without a folder to do so, it is waited for as if it had not been started."""
    global _lock
    try:
        path = _path(int(os.environ["RANK"]))
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if path.parent.lstat().st_uid != os.getuid():
            return
        _lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.utime(_lock)
        # By lockf, because a lock of flock would be inherited by child processes, which may outlive the rank.
        # Shared, so that a process left from an earlier job does not stand in the way.
        fcntl.lockf(_lock, fcntl.LOCK_SH)
    except OSError:
        return


def joined() -> None:
    """Take this rank's file away: from now on, its connection shows whether it runs."""
    if _lock is not None:
        _path(int(os.environ["RANK"])).unlink(missing_ok=True)


def has_died(rank: int) -> bool:
    """Return whether a rank of this job was started on this host and has ended."""
    try:
        file = os.open(_path(rank), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.fstat(file)
        # In a shared folder, others could make files that look like those of dead ranks.
        if status.st_uid != os.getuid() or status.st_mtime < _STARTED_AT - RECENT_S:
            return False
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(file)


def _path(rank: int) -> Path:
    folder = Path(tempfile.gettempdir()) / f"determined-ranks-{os.getuid()}"
    job = "\0".join(os.environ.get(name, "") for name in _OF_A_JOB)
    return folder / f"{hashlib.sha256(job.encode()).hexdigest()[:16]}.{rank}"
