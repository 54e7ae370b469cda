"""How far a transfer is, for whoever wants to show it."""

import threading
from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all) from any thread of a transfer, one call at a time; must be quick."""


class Meter:
    """Add up what several threads have moved."""

    def __init__(self, total_bytes: int, tell: Progress | None) -> None:
        self._total = total_bytes
        self._done = 0
        self._tell = tell
        self._lock = threading.Lock()
        self.add(0)

    def add(self, moved_bytes: int) -> None:
        """Count bytes that have arrived; negative ones have to be fetched again."""
        if self._tell is not None:
            with self._lock:
                self._done += moved_bytes
                self._tell(self._done, self._total)
