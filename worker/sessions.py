"""The sessions that a worker has begun, also those of its processes before this one.

A registration may reach the log long after its process has ended, and after that of the next process. Who has
the folder then must know it for its own: a session that it does not know is that of a copy of its folder.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import structlog

from services.kit.files import write_atomic

FILE = "sessions.json"
MAX_SESSIONS = 100
"""How many are remembered, the newest ones."""

log = structlog.get_logger()


class Sessions:
    """Sessions of all processes that have had the worker's folder."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._sessions = self._read()

    def __contains__(self, session: str) -> bool:
        return session in self._sessions

    def add(self, session: str) -> None:
        """Remember a session. Call it before anybody may hear of it."""
        self._sessions = [*self._sessions, session][-MAX_SESSIONS:]
        try:
            write_atomic(self._path, msgspec.json.encode(self._sessions))
        except OSError as error:
            # This process knows it in any case, and only the next one would need the file.
            log.warning("session.not_noted", path=str(self._path), error=str(error))

    def _read(self) -> list[str]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[str])
        except FileNotFoundError:
            return []
        except (msgspec.MsgspecError, OSError) as error:
            log.warning("sessions.unreadable", path=str(self._path), error=str(error))
            return []
