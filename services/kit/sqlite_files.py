"""Damaged SQLite files: found, set aside, and made again from the log.

A file is looked at before it is opened: its header and its length always, all of its pages only when its
last user did not close it, and then for no longer than `CHECK_S`: a large one would hold up the start by
minutes, and what is damaged further on is found by whoever reads it. Who meets damage while running leaves a
note beside the file and ends; the next start sets the file aside.
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
NOTE = ".is-damaged"
FOLLOWS = "another is made from the log"
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

log = structlog.get_logger()


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite database; None for one in memory, and for other databases."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database or parsed.database == ":memory:":
        return None
    return Path(parsed.database)


def set_aside_if_damaged(url: str, owner: str) -> str:
    """Set the file of a database aside when it is damaged, so that another is made; returns what was wrong.

    Empty when nothing is, and for what is no SQLite file. Blocks for some seconds at most.
    """
    path = sqlite_file(url)
    wrong = damage(path) if path is not None else ""
    if path is None or not wrong:
        return ""
    size = path.stat().st_size if path.exists() else 0
    note_of(path).unlink(missing_ok=True)
    if not size:
        # Nothing to keep: it was lost with the power, or its maker ended before anything was in it.
        log.warning("database.empty", owner=owner, now=FOLLOWS)
        return wrong
    kept = set_aside(path, COMPANIONS)
    log.error("database.damaged", owner=owner, reason=wrong, bytes=size, kept_as=str(kept), now=FOLLOWS)
    return wrong


def damage(path: Path) -> str:
    """What is wrong with a database file; empty when nothing is known to be, or there is none."""
    with contextlib.suppress(FileNotFoundError):
        return note_of(path).read_text(errors="replace") or "it was found damaged while it was read"
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
    return _wrong_with_header(header, size, cut=not unclean) or _wrong_inside(path, unclean)


def note_damage(path: Path, reason: str) -> None:
    """Have the next start set a file aside."""
    with contextlib.suppress(OSError):
        note_of(path).write_text(reason)


def note_of(path: Path) -> Path:
    """Where it is noted that a file is damaged."""
    return path.with_name(path.name + NOTE)


def is_damage(error: sa.exc.DBAPIError) -> bool:
    """Whether an error says that the file itself is broken, not a statement, a lock or a full disk."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    # The lower byte is the kind, the others say where it was noticed.
    return isinstance(code, int) and code & 0xFF in DAMAGE


def _wrong_with_header(header: bytes, size: int, *, cut: bool) -> str:
    """`cut` asks for the length, too: who was killed while copying from the `-wal` left it half done."""
    if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
        return "it does not begin as a database does"
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    if page < 512 or page & (page - 1):
        return f"its header states pages of {page} bytes"
    pages, counted = int.from_bytes(header[28:32], "big"), header[24:28] == header[92:96]
    if cut and counted and size < pages * page:
        return f"it is cut: {size} bytes, where its header tells of {pages * page}"
    return ""


def _wrong_inside(path: Path, unclean: bool) -> str:
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=30, check_same_thread=False)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            found = _checked(connection) if unclean else "ok"
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in DAMAGE:
            return str(error)
        # A lock, a full disk, no right to read it: not for this to judge.
        return ""
    return "" if found == "ok" else found


def _checked(connection: sqlite3.Connection) -> str:
    """What `PRAGMA quick_check` finds in the time that there is; `ok` when that is nothing."""
    bell = threading.Timer(CHECK_S, connection.interrupt)
    bell.start()
    try:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT:
            log.info("database.checked_in_part", seconds=CHECK_S)
            return "ok"
        raise
    finally:
        bell.cancel()
        bell.join()
    return " ".join(str(found).split())
