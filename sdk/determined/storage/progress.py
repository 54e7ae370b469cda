"""Progress of a transfer."""

import threading
from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with (bytes done, total bytes) from any thread of a transfer, one call at a time. Must be fast."""


class Meter:
    """Adds up the bytes moved by several threads."""

    def __init__(self, total_bytes: int, tell: Progress | None) -> None:
        self._total = total_bytes
        self._done = 0
        self._tell = tell
        self._lock = threading.Lock()
        # So that a transfer of nothing shows its progress, too.
        self.add(0)

    def add(self, moved_bytes: int) -> None:
        """Count bytes that have arrived. Negative numbers are bytes that must be fetched again."""
        if self._tell is not None:
            with self._lock:
                self._done += moved_bytes
                self._tell(self._done, self._total)
