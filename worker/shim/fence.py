"""Ends a run whose host has lost contact with the cluster, so that the run may be started elsewhere."""

from __future__ import annotations

import time


class Fence:
    """The deadline of one run, extended by each contact that the worker records in a file."""

    def __init__(self, contact: str, after_s: float) -> None:
        self._contact = contact
        self._after_s = after_s
        self._last = 0.0

    def has_expired(self) -> bool:
        """Whether the last contact is too long ago."""
        # Read first: a contact that is recorded in between would lie in the future, and not count.
        contact_at = self._read()
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        # A time in the future is a line that was read while it was being written.
        if contact_at is not None and contact_at <= now:
            self._last = contact_at
        return now - self._last > self._after_s

    def _read(self) -> float | None:
        try:
            with open(self._contact, "rb") as file:
                return float(file.read(64))
        except (OSError, ValueError):
            return None
