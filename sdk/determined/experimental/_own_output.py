"""Captures this process's output: it is still printed, and also stored with the trial."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, TextIO

MAX_LINES = 500
Ship = Callable[[list[dict[str, Any]]], None]


class _Tee:
    """A stream that also passes complete lines to a callback."""

    def __init__(self, stream: TextIO, on_line: Callable[[str], None]) -> None:
        self._stream, self._on_line, self._rest = stream, on_line, ""

    def write(self, text: str) -> int:
        # First, so that nothing that goes wrong here hides the script's output.
        written = self._stream.write(text)
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._on_line(line)
        return written

    def finish(self) -> None:
        """Pass on the remaining text that has no newline."""
        if self._rest:
            self._on_line(self._rest)
            self._rest = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class OwnOutput:
    """Captures stdout and stderr until it is closed. A thread sends the lines twice a second."""

    EVERY_S = 0.5

    def __init__(self, ship: Ship, rank: int) -> None:
        self._ship, self._rank = ship, rank
        self._lock = threading.Lock()
        self._lines: list[dict[str, Any]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, name="determined-output", daemon=True)
        self._before = sys.stdout, sys.stderr
        self._tees = [self._tee("stdout", sys.stdout), self._tee("stderr", sys.stderr)]
        sys.stdout, sys.stderr = self._tees
        self._thread.start()

    def close(self) -> None:
        """Restore the streams and send the remaining lines."""
        if self._over.is_set():
            return
        # Other code may have wrapped our stream in the meantime; then leave its wrapper in place.
        for name, tee, before in zip(("stdout", "stderr"), self._tees, self._before, strict=True):
            if getattr(sys, name) is tee:
                setattr(sys, name, before)
            tee.finish()
        self._over.set()
        self._thread.join()

    def _tee(self, name: str, stream: TextIO) -> _Tee:
        def on_line(text: str) -> None:
            now = datetime.now(timezone.utc).isoformat()
            line = {"timestamp": now, "log": text, "stdtype": name, "rank": self._rank}
            with self._lock:
                self._lines.append(line)

        return _Tee(stream, on_line)

    def _send(self) -> None:
        while not self._over.wait(self.EVERY_S):
            self._hand_on()
        self._hand_on()

    def _hand_on(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
        # A request has a size limit, and lines gather while the cluster is away.
        for start in range(0, len(lines), MAX_LINES):
            self._ship(lines[start : start + MAX_LINES])
