"""Requests of administrators to rebuild an owner's database from the log, each served once."""

from __future__ import annotations


class RebuildRequests:
    """Which request is to be served next. Positions are those of requests in CONTROL; 0 means none."""

    def __init__(self) -> None:
        self.begun = 0
        """The request for which the loaded database was last begun again."""
        self._newest = 0
        self._served = 0

    def ask(self, position: int) -> None:
        """Have everything rebuilt, unless this request was served already."""
        if position > max(self.begun, self._newest, self._served):
            self._newest = position

    def serve(self, position: int) -> None:
        """Serve all requests up to a position by folding from the beginning, as is done anyway."""
        self._served = position

    @property
    def due(self) -> int:
        """The request that is to be served now."""
        return self._newest if self._newest > self.begun else 0
