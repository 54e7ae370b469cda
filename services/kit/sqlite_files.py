"""Damaged SQLite files: detected, set aside, and rebuilt from the log.

A file is checked before it is opened. Header and length are always checked; all pages only if the last user
did not close the file, and then for at most `CHECK_S` seconds: a large file would delay the start by minutes,
and damage further on is found when it is read. A process that hits damage while running leaves a note beside
the file and exits; the next start sets the file aside.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

import sqlalchemy as sa
import structlog

from services.kit.files import set_aside

CHECK_S = 2.0
MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
COMPANIONS = ("-wal", "-shm")
MARKER_SUFFIX = ".is-damaged"
REBUILD_NOTICE = "a new one is built from the log"
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

log = structlog.get_logger()


def sqlite_file(url: str) -> Path | None:
    """Return the file of an SQLite database; None for one in memory and for other databases."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database or parsed.database == ":memory:":
        return None
    return Path(parsed.database)


def set_aside_if_damaged(url: str, owner: str) -> str:
    """Set a damaged database file aside so that a new one is created. Returns what was wrong.

    Returns an empty string for an intact file and for anything but an SQLite file. Blocks for a few seconds
    at most.
    """
    path = sqlite_file(url)
    wrong = damage(path) if path is not None else ""
    if path is None or not wrong:
        return ""
    size = path.stat().st_size if path.exists() else 0
    damage_marker(path).unlink(missing_ok=True)
    if not size:
        # Nothing to keep: it was lost in a power failure, or the process that created it exited before
        # writing.
        log.warning("database.empty", owner=owner, now=REBUILD_NOTICE)
        return wrong
    damaged_copy = set_aside(path, COMPANIONS)
    log.error(
        "database.damaged",
        owner=owner,
        reason=wrong,
        bytes=size,
        kept_as=str(damaged_copy),
        now=REBUILD_NOTICE,
    )
    return wrong


def damage(path: Path) -> str:
    """Describe what is wrong with a database file; empty if it is missing or no damage is known."""
    with contextlib.suppress(FileNotFoundError):
        return damage_marker(path).read_text(errors="replace") or "it was found damaged while it was read"
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return ""
    if size == 0:
        return "it is empty"
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
    wal = Path(f"{path}-wal")
    unclean = wal.exists() and wal.stat().st_size > 0
    return _header_problem(header, size, cut=not unclean) or _content_problem(path, unclean)


def mark_damaged(path: Path, reason: str) -> None:
    """Leave a note that makes the next start set a file aside."""
    with contextlib.suppress(OSError):
        damage_marker(path).write_text(reason)


def damage_marker(path: Path) -> Path:
    """Return the path of the note that a file is damaged."""
    return path.with_name(path.name + MARKER_SUFFIX)


def is_damage(error: sa.exc.DBAPIError) -> bool:
    """Whether the error means a damaged file, rather than a bad statement, a lock or a full disk."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    # The low byte is the kind of error; the rest says where it was detected.
    return isinstance(code, int) and code & 0xFF in DAMAGE


def _header_problem(header: bytes, size: int, *, cut: bool) -> str:
    """Check the header and, with `cut`, the length.

    A process killed during a WAL checkpoint leaves the file short, so `cut` is false while there is a WAL.
    """
    if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
        return "it does not start like a database"
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    if page < 512 or page & (page - 1):
        return f"its header states pages of {page} bytes"
    pages, counted = int.from_bytes(header[28:32], "big"), header[24:28] == header[92:96]
    if cut and counted and size < pages * page:
        return f"it is truncated: {size} bytes, but its header says {pages * page}"
    return ""


def _content_problem(path: Path, unclean: bool) -> str:
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=30, check_same_thread=False)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            finding = _quick_check(connection) if unclean else "ok"
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in DAMAGE:
            return str(error)
        # A lock, a full disk, or missing permissions are not damage.
        return ""
    return "" if finding == "ok" else finding


def _quick_check(connection: sqlite3.Connection) -> str:
    """Run `PRAGMA quick_check` for a limited time. Returns its finding; `ok` if there is none."""
    timer = threading.Timer(CHECK_S, connection.interrupt)
    timer.start()
    try:
        (finding,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT:
            log.info("database.checked_in_part", seconds=CHECK_S)
            return "ok"
        raise
    finally:
        timer.cancel()
        # The timer must not interrupt a connection that is closed by then.
        timer.join()
    return " ".join(str(finding).split())
