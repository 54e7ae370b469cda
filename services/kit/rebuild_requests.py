"""Requests of administrators to rebuild an owner's database from the log, each served once."""

from __future__ import annotations


class RebuildRequests:
    """Tracks which request is to be served next. Positions are those of requests in CONTROL; 0 means none."""

    def __init__(self) -> None:
        self.rebuilt_for = 0
        """The request for which the loaded database was last emptied."""
        self._newest = 0
        self._served = 0

    def request(self, position: int) -> None:
        """Take a request into account, unless it was served already."""
        if position > max(self.rebuilt_for, self._newest, self._served):
            self._newest = position

    def mark_served(self, position: int) -> None:
        """Record that all requests up to a position are served, because all is folded from the beginning."""
        self._served = position

    @property
    def due(self) -> int:
        """The request that is to be served now."""
        return self._newest if self._newest > self.rebuilt_for else 0
