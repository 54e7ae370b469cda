"""Requests of administrators to rebuild an owner's database from the log, each served once."""

from __future__ import annotations

import sqlalchemy as sa

from services.kit.database import SNAPSHOTS, upsert

BEGUN = "rebuild begun"
"""Kind of the row whose position is that of the request in CONTROL for which everything was last deleted or
replaced. Shared by all fold versions."""
DUE = "rebuild due"
"""Kind of the row whose position is that of the newest saved request."""
_POSITION = sa.select(SNAPSHOTS.c.position).where(
    SNAPSHOTS.c.owner == sa.bindparam("of_owner"),
    SNAPSHOTS.c.kind == sa.bindparam("of_kind"),
    SNAPSHOTS.c.id == "",
)
"""Built once: each save asks this, and to build a statement takes longer than to run it."""


def position_of(connection: sa.Connection, owner: str, kind: str) -> int:
    """Return the position of the only row of a kind; 0 if there is none."""
    return connection.execute(_POSITION, {"of_owner": owner, "of_kind": kind}).scalar() or 0


class RebuildRows:
    """What an owner's database says about requests, by their positions in CONTROL; 0 means none."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def served(self, connection: sa.Connection) -> int:
        """Return the newest request that was served."""
        return self._position(connection, BEGUN)

    def mark_served(self, connection: sa.Connection, request: int) -> None:
        """Note that a request is served."""
        self._set_position(connection, BEGUN, request)

    def due(self, connection: sa.Connection) -> int:
        """Return the saved request that is not served yet."""
        request = self._position(connection, DUE)
        return request if request > self.served(connection) else 0

    def mark_due(self, connection: sa.Connection, request: int) -> None:
        """Save a request, if there is one, together with the position behind it: it is not read again."""
        if request:
            self._set_position(connection, DUE, request)

    def _position(self, connection: sa.Connection, kind: str) -> int:
        return position_of(connection, self._owner, kind)

    def _set_position(self, connection: sa.Connection, kind: str, position: int) -> None:
        row = {"owner": self._owner, "kind": kind, "id": "", "body": b"null", "root": None, "away": 0}
        upsert(connection, SNAPSHOTS, [row | {"position": position}])


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
