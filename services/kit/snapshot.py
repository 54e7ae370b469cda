"""The stored form of one owner's folded state.

A release whose fold makes another state of the same log has another *fold version* (`Rules.fold_version`),
and keeps its snapshot in rows of its own. So two releases over one database never read each other's records:
each goes on from what it saved itself, or folds the log anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

import msgspec
import sqlalchemy as sa

from services.kit.database import HERE, POSITIONS, SNAPSHOTS, Unreadable, upsert
from services.kit.log import Mark
from services.kit.rules import Key, record_types

MARKS = "log marks"
"""The kind of snapshot rows that are no records: what the log is known by, to all versions of the fold."""
DROPPED = "records dropped"
"""The kind of a row whose position says when a record last went for good that belonged to a root."""
NO_RECORDS = (MARKS, DROPPED)
AT_ONCE = 500
"""So many ids are named in one question to the database."""


@dataclass
class Pages:
    """Records that were looked for, with all that belongs to their roots, as they lie in the database."""

    positions: dict[str, int]
    """By stream, what they are true at."""
    dropped: int = 0
    """When a record last went for good, as rows say when they were saved."""
    records: dict[str, dict[Key, Any]] = field(default_factory=dict)
    """By root."""
    newest: int = 0
    """When one of these was last saved: the sum of the positions of all streams, greater with each save."""

    folded_save: int = 0
    """Of the saves that are known, and folded here in all streams, the newest: its sum."""

    def changed_after(self, here: Mapping[str, int]) -> bool:
        """Whether it may have been otherwise where the log is folded up to `here`.

        Of several streams one may be behind and another ahead, so that no sum tells what is folded here.
        """
        if all(at <= here.get(stream, at) for stream, at in self.positions.items()):
            return False
        bound = self.folded_save if len(self.positions) > 1 else sum(here.values())
        return max(self.newest, self.dropped) > bound


class Snapshot:
    """One owner's records and the positions that they are true at, as one version of its fold has them."""

    def __init__(self, owner: str, state: type[Any], fold_version: int = 1) -> None:
        """`fold_version`: of the rules that make the state; rows of version 1 have the owner's bare name."""
        self.owner = owner
        self.fold_version = fold_version
        self._rows = _rows(owner, fold_version)
        self._state = state
        self._types = record_types(state)
        self._decoders: dict[str, msgspec.json.Decoder[Any]] = {
            kind: msgspec.json.Decoder(record) for kind, (_, record) in self._types.items()
        }

    def load(self, connection: sa.Connection) -> tuple[Any, dict[str, int]]:
        """The state and the position of each stream that it is true at; empty when nothing was stored.

        Roots that are away are left where they are.
        """
        tables: dict[str, dict[Any, Any]] = {kind: {} for kind in self._types}
        query = sa.select(SNAPSHOTS.c.kind, SNAPSHOTS.c.id, SNAPSHOTS.c.body).where(
            SNAPSHOTS.c.owner == self._rows, SNAPSHOTS.c.kind.not_in(NO_RECORDS), HERE
        )
        for kind, id, body in connection.execute(query):
            key, record = self._read(kind, id, body)
            tables[kind][key] = record
        return self._state(**tables), self.positions(connection)

    def _read(self, kind: str, id: str, body: bytes) -> tuple[Any, Any]:
        try:
            return self._types[kind][0](id), self._decoders[kind].decode(body)
        except msgspec.ValidationError:
            # Sound, and of another version: that is for a person to look at.
            raise
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreadable(f"the record of {kind} '{id}' cannot be read: {error}") from error

    def pages(
        self,
        connection: sa.Connection,
        keys: Iterable[Key],
        roots: Iterable[str],
        known: Callable[[str], bool] = lambda _: False,
    ) -> Pages:
        """All records of some roots, and of those that some records belong to, but for `known` roots.

        Nothing is stored under half a character, which no database takes, whoever asks for it.
        """
        wanted = set(filter(_is_whole, roots))
        for kind, some in groupby(sorted(keys, key=_by_kind), key=_by_kind):
            for ids in _portions(filter(_is_whole, (str(id) for _, id in some))):
                query = sa.select(SNAPSHOTS.c.root).where(
                    SNAPSHOTS.c.owner == self._rows, SNAPSHOTS.c.kind == kind, SNAPSHOTS.c.id.in_(ids)
                )
                wanted.update(root for root in connection.execute(query).scalars() if root is not None)
        found = Pages(self.positions(connection), self._dropped(connection))
        c = SNAPSHOTS.c
        columns = c.root, c.kind, c.id, c.body, c.position
        for portion in _portions(root for root in wanted if not known(root)):
            query = sa.select(*columns).where(self._of_roots(portion))
            for root, kind, id, body, position in connection.execute(query):
                key, record = self._read(kind, id, body)
                found.newest = max(found.newest, position)
                found.records.setdefault(root, {})[kind, key] = record
        return found

    def rootless(self, connection: sa.Connection, kinds: Iterable[str]) -> list[Key]:
        """Records that a release has saved which knows of no roots: only in version 1 are its rows ours."""
        if self.fold_version != 1:
            return []
        c = SNAPSHOTS.c
        query = sa.select(c.kind, c.id).where(
            c.owner == self._rows, c.root.is_(None), c.kind.in_(list(kinds))
        )
        return [(kind, self._types[kind][0](id)) for kind, id in connection.execute(query)]

    def _dropped(self, connection: sa.Connection) -> int:
        query = sa.select(SNAPSHOTS.c.position).where(
            SNAPSHOTS.c.owner == self._rows, SNAPSHOTS.c.kind == DROPPED, SNAPSHOTS.c.id == ""
        )
        return connection.execute(query).scalar() or 0

    def _of_roots(self, roots: list[str]) -> sa.ColumnElement[bool]:
        return sa.and_(SNAPSHOTS.c.owner == self._rows, SNAPSHOTS.c.root.in_(roots))

    def _move(self, connection: sa.Connection, roots: Iterable[str], away: int) -> None:
        """Have roots loaded at the next start, or not."""
        for some in _portions(roots):
            others = sa.and_(self._of_roots(some), SNAPSHOTS.c.away != away)
            connection.execute(sa.update(SNAPSHOTS).where(others).values(away=away))

    def save(
        self,
        connection: sa.Connection,
        records: Mapping[Key, Any],
        positions: Mapping[str, int],
        marks: Mapping[str, Mark] | None = None,
        roots: Mapping[Key, str] | None = None,
        away: Collection[str] = (),
        *,
        dropped: bool = False,
    ) -> bool:
        """Store what changed together with the positions, and with what the log is known by.

        `roots` are those of records that belong to one; `away` are roots that a start need not load, unless
        something of them has changed here; `dropped`, whether a record that belonged to a root is none any
        more. Returns False, storing nothing, when another replica has already stored a later state.
        """
        stored = self.positions(connection, hold=True)
        if any(stored.get(stream, 0) > position for stream, position in positions.items()):
            return False
        roots = roots or {}
        self._move(connection, away, 1)
        self._move(connection, {roots[key] for key in records if key in roots}, 0)
        at = sum(positions.values())
        rows = [
            _row(self._rows, kind, str(id), record, roots.get((kind, id)), at)
            for (kind, id), record in records.items()
            if record is not None
        ]
        rows += [_row(self._rows, DROPPED, "", None, position=at)] * dropped
        rows += [_row(self.owner, MARKS, stream, mark) for stream, mark in (marks or {}).items()]
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


def _row(
    owner: str, kind: str, id: str, record: Any, root: str | None = None, position: int = 0
) -> dict[str, Any]:
    body = msgspec.json.encode(record)
    return {
        "owner": owner,
        "kind": kind,
        "id": id,
        "body": body,
        "root": root,
        "away": 0,
        "position": position,
    }


def _by_kind(key: Key) -> str:
    return key[0]


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _portions(ids: Iterable[str]) -> Iterable[list[str]]:
    left = iter(ids)
    return iter(lambda: list(islice(left, AT_ONCE)), [])
