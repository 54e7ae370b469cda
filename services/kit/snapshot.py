"""The stored form of one owner's folded state.

A release whose fold makes another state of the same log has another *fold version* (`Rules.fold_version`),
and keeps its snapshot in rows of its own. So two releases over one database never read each other's records:
each goes on from what it saved itself, or folds the log anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from services.kit.database import POSITIONS, SNAPSHOTS, Unreadable, upsert
from services.kit.log import Mark
from services.kit.rules import Key, record_types

MARKS = "log marks"
"""The kind of snapshot rows that are no records: what the log is known by, to all versions of the fold."""


class Snapshot:
    """One owner's records and the positions that they are true at, as one version of its fold has them."""

    def __init__(self, owner: str, state: type[Any], fold_version: int = 1) -> None:
        """`fold_version`: of the rules that make the state; rows of version 1 have the owner's bare name."""
        self.owner = owner
        self.fold_version = fold_version
        self._rows = _rows(owner, fold_version)
        self._state = state
        self._types = record_types(state)

    def load(self, connection: sa.Connection) -> tuple[Any, dict[str, int]]:
        """The state and the position of each stream that it is true at; empty when nothing was stored."""
        tables: dict[str, dict[Any, Any]] = {kind: {} for kind in self._types}
        decoders: dict[str, msgspec.json.Decoder[Any]] = {
            kind: msgspec.json.Decoder(record) for kind, (_, record) in self._types.items()
        }
        query = sa.select(SNAPSHOTS.c.kind, SNAPSHOTS.c.id, SNAPSHOTS.c.body).where(
            SNAPSHOTS.c.owner == self._rows, SNAPSHOTS.c.kind != MARKS
        )
        for kind, key, body in connection.execute(query):
            try:
                tables[kind][self._types[kind][0](key)] = decoders[kind].decode(body)
            except msgspec.ValidationError:
                # Sound, and of another version: that is for a person to look at.
                raise
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise Unreadable(f"the record of {kind} '{key}' cannot be read: {error}") from error
        return self._state(**tables), self.positions(connection)

    def save(
        self,
        connection: sa.Connection,
        records: Mapping[Key, Any],
        positions: Mapping[str, int],
        marks: Mapping[str, Mark] | None = None,
    ) -> bool:
        """Store what changed together with the positions, and with what the log is known by.

        Returns False, storing nothing, when another replica has already stored a later state.
        """
        stored = self.positions(connection, hold=True)
        if any(stored.get(stream, 0) > position for stream, position in positions.items()):
            return False
        rows = [
            {"owner": self._rows, "kind": kind, "id": str(key), "body": msgspec.json.encode(record)}
            for (kind, key), record in records.items()
            if record is not None
        ]
        rows += [
            {"owner": self.owner, "kind": MARKS, "id": stream, "body": msgspec.json.encode(mark)}
            for stream, mark in (marks or {}).items()
        ]
        upsert(connection, SNAPSHOTS, rows)
        self._drop(connection, (key for key, record in records.items() if record is None))
        upsert(
            connection,
            POSITIONS,
            [{"owner": self._rows, "stream": s, "position": p} for s, p in positions.items()],
        )
        return True

    def positions(self, connection: sa.Connection, *, hold: bool = False) -> dict[str, int]:
        """How far of each stream is stored; `hold` lets no other replica store before this one has."""
        query = sa.select(POSITIONS.c.stream, POSITIONS.c.position).where(POSITIONS.c.owner == self._rows)
        query = query.with_for_update() if hold else query
        return {stream: position for stream, position in connection.execute(query)}

    def known(self, connection: sa.Connection) -> dict[str, int]:
        """How far each stream was read by whichever version of the fold: the log reaches as far at least."""
        newest = sa.func.max(POSITIONS.c.position)
        query = sa.select(POSITIONS.c.stream, newest).group_by(POSITIONS.c.stream)
        return {stream: position for stream, position in connection.execute(query)}

    def others(self, connection: sa.Connection) -> list[int]:
        """The other versions of the fold that have stored a state."""
        found = connection.execute(sa.select(POSITIONS.c.owner).distinct()).scalars()
        return sorted({_version(rows) for rows in found} - {self.fold_version})

    def forget_all(self, connection: sa.Connection) -> None:
        """Drop what all versions have stored."""
        for version in (self.fold_version, *self.others(connection)):
            self._forget(connection, version)

    def forget_older(self, connection: sa.Connection) -> None:
        """Drop what versions before the last one stored; to that one somebody may want to go back."""
        older = [version for version in self.others(connection) if version < self.fold_version]
        for version in older[:-1]:
            self._forget(connection, version)

    def marks(self, connection: sa.Connection) -> dict[str, Mark]:
        """By stream, a message that was read before the snapshot was stored."""
        query = sa.select(SNAPSHOTS.c.id, SNAPSHOTS.c.body).where(
            SNAPSHOTS.c.owner == self.owner, SNAPSHOTS.c.kind == MARKS
        )
        return {stream: msgspec.json.decode(body, type=Mark) for stream, body in connection.execute(query)}

    def _drop(self, connection: sa.Connection, keys: Iterable[Key]) -> None:
        for kind, key in keys:
            connection.execute(
                sa.delete(SNAPSHOTS).where(
                    SNAPSHOTS.c.owner == self._rows, SNAPSHOTS.c.kind == kind, SNAPSHOTS.c.id == str(key)
                )
            )

    def _forget(self, connection: sa.Connection, version: int) -> None:
        rows = _rows(self.owner, version)
        connection.execute(sa.delete(SNAPSHOTS).where(SNAPSHOTS.c.owner == rows, SNAPSHOTS.c.kind != MARKS))
        connection.execute(sa.delete(POSITIONS).where(POSITIONS.c.owner == rows))


def _rows(owner: str, version: int) -> str:
    return owner if version == 1 else f"{owner}@{version}"


def _version(rows: str) -> int:
    return int(rows.partition("@")[2] or 1)
