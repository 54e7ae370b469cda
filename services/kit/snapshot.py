"""The stored form of one owner's folded state.

A release whose fold derives a different state from the same log has a different *fold version*
(`Rules.fold_version`) and keeps its snapshot in its own rows. Two releases on one database therefore never
read each other's records: each continues from its own snapshot, or folds the log from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import msgspec
import sqlalchemy as sa

from services.kit.database import (
    IS_LOADED,
    LOADED_INDEX,
    POSITIONS,
    SNAPSHOTS,
    UnreadableRecord,
    delete_matching,
    id_batches,
    upsert,
)
from services.kit.log import Mark
from services.kit.rebuild_requests import BEGUN, DUE, RebuildRows, position_of
from services.kit.rules import Key, record_decoders, record_types

MARKS_KIND = "log marks"
"""Kind of the snapshot rows that identify the log, shared by all fold versions. They hold no records."""
DELETION_KIND = "records dropped"
"""Kind of the row whose position says when a record with a root was last deleted for good."""
KINDS_WITHOUT_RECORDS = (MARKS_KIND, DELETION_KIND, BEGUN, DUE)
# Built once, since each save runs them, and to build a statement takes longer than to run it.
_POSITIONS = sa.select(POSITIONS.c.stream, POSITIONS.c.position).where(
    POSITIONS.c.owner == sa.bindparam("of_owner")
)
_LOCKED_POSITIONS = _POSITIONS.with_for_update()
_MARKING = (
    sa.update(SNAPSHOTS)
    .where(
        SNAPSHOTS.c.owner == sa.bindparam("of_owner"),
        SNAPSHOTS.c.root.in_(sa.bindparam("of_roots", expanding=True)),
        SNAPSHOTS.c.away != sa.bindparam("new_away"),
    )
    .values(away=sa.bindparam("new_away"))
)
"""Marks the records of roots as loaded, or not, by the next start."""


@dataclass
class Pages:
    """Requested records together with everything else under their roots, as stored in the database."""

    positions: dict[str, int]
    """Per stream, the position the records reflect."""
    last_deletion: int = 0
    """When a record was last deleted for good, on the same scale as `newest`."""
    records: dict[str, dict[Key, Any]] = field(default_factory=dict)
    """Per root."""
    last_save: int = 0
    """When one of these was last saved: the sum of the positions of all streams, which grows with each
    save."""

    rebuilt_for: int = 0
    """Position of the request for which the database was last emptied; 0 if never."""
    folded_save: int = 0
    """The sum for the newest known save that is folded here in all streams."""

    def may_differ_at(self, here: Mapping[str, int]) -> bool:
        """Whether the records may have been different at the positions folded `here`.

        With several streams, one may be behind and another ahead, so a sum of positions cannot tell what is
        folded here.
        """
        if all(at <= here.get(stream, at) for stream, at in self.positions.items()):
            return False
        bound = self.folded_save if len(self.positions) > 1 else sum(here.values())
        # Deletions count, too: a record that was there at the positions folded here may have left no row
        # behind.
        return max(self.last_save, self.last_deletion) > bound


def furthest_positions(connection: sa.Connection) -> dict[str, int]:
    """Return the furthest position any fold version has read in each stream.

    The log must reach at least there.
    """
    newest = sa.func.max(POSITIONS.c.position)
    query = sa.select(POSITIONS.c.stream, newest).group_by(POSITIONS.c.stream)
    return {stream: position for stream, position in connection.execute(query)}


class Snapshot:
    """One owner's records and their positions in the log, for one version of its fold."""

    def __init__(self, owner: str, state: type[Any], fold_version: int = 1) -> None:
        """`fold_version` is that of the rules that derive the state.

        Rows of version 1 carry the owner's bare name.
        """
        self.owner = owner
        self.rebuild_rows = RebuildRows(owner)
        self.fold_version = fold_version
        self._row_owner = _row_owner(owner, fold_version)
        self._state = state
        self._types = record_types(state)
        self._decoders = record_decoders(state)

    def load(self, connection: sa.Connection) -> tuple[Any, dict[str, int]]:
        """Load the state and its position in each stream; both are empty if nothing was stored.

        Roots marked as away are not loaded.
        """
        tables: dict[str, dict[Any, Any]] = {kind: {} for kind in self._types}
        query = (
            sa.select(
                *(sa.column(c.name, c.type) for c in (SNAPSHOTS.c.kind, SNAPSHOTS.c.id, SNAPSHOTS.c.body))
            )
            .select_from(_snapshots_by_loaded(connection))
            .where(
                sa.column("owner") == self._row_owner,
                sa.column("kind").not_in(KINDS_WITHOUT_RECORDS),
                IS_LOADED,
            )
        )
        for kind, id, body in connection.execute(query):
            key, record = self._decode_row(kind, id, body)
            tables[kind][key] = record
        return self._state(**tables), self.positions(connection)

    def _decode_row(self, kind: str, id: str, body: bytes) -> tuple[Any, Any]:
        try:
            return self._types[kind][0](id), self._decoders[kind].decode(body)
        except msgspec.ValidationError:
            # Not damaged, but of an incompatible version: an operator must look at it.
            raise
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableRecord(f"the record of {kind} '{id}' cannot be read: {error}") from error

    def pages(
        self,
        connection: sa.Connection,
        keys: Iterable[Key],
        roots: Iterable[str],
        is_loaded: Callable[[str], bool] = lambda _: False,
    ) -> Pages:
        """Load all records of the given roots and of the roots of the given keys, except `is_loaded` roots.

        Ids with a lone surrogate are skipped: no database can store them, so nothing is stored under them.
        """
        wanted = set(filter(_is_valid_unicode, roots))
        for kind, some in groupby(sorted(keys, key=_by_kind), key=_by_kind):
            for ids in id_batches(filter(_is_valid_unicode, (str(id) for _, id in some))):
                query = self._select_by_id(connection, kind, ids, SNAPSHOTS.c.root)
                wanted.update(root for root in connection.execute(query).scalars() if root is not None)
        pages = self._no_pages(connection)
        c = SNAPSHOTS.c
        columns = sa.select(c.root, c.kind, c.id, c.body, c.position)
        for portion in id_batches(root for root in wanted if not is_loaded(root)):
            for root, kind, id, body, position in connection.execute(columns.where(self._in_roots(portion))):
                key, record = self._decode_row(kind, id, body)
                pages.last_save = max(pages.last_save, position)
                pages.records.setdefault(root, {})[kind, key] = record
        return pages

    def records(self, connection: sa.Connection, keys: Iterable[Key]) -> Pages:
        """Load only these records, without the others under their roots."""
        pages = self._no_pages(connection)
        c = SNAPSHOTS.c
        for kind, some in groupby(sorted(keys, key=_by_kind), key=_by_kind):
            for ids in id_batches(filter(_is_valid_unicode, (str(id) for _, id in some))):
                query = self._select_by_id(connection, kind, ids, c.root, c.id, c.body, c.position)
                rows: Any = connection.execute(query)
                for root, id, body, position in rows:
                    key, record = self._decode_row(kind, id, body)
                    pages.last_save = max(pages.last_save, position)
                    pages.records.setdefault(root or "", {})[kind, key] = record
        return pages

    def _select_by_id(
        self, connection: sa.Connection, kind: str, ids: list[str], *columns: sa.ColumnElement[Any]
    ) -> sa.Select[Any]:
        """Select these records of one kind, each by its whole key."""
        c = SNAPSHOTS.c
        of_kind = sa.select(*columns).where(c.owner == self._row_owner, c.kind == kind)
        if connection.dialect.name != "postgresql":
            return of_kind.where(c.id.in_(ids))
        # PostgreSQL knows little of an owner's rows while the log is folded anew: it expects a few of each
        # kind, and would compare all of them with a list of ids. The limit keeps it from doing so here.
        wanted = sa.func.unnest(sa.cast(ids, sa.ARRAY(sa.String))).table_valued("id").render_derived("wanted")
        record = of_kind.where(c.id == wanted.c.id).limit(1).lateral("record")
        return sa.select(record).select_from(wanted).join(record, sa.true())

    def keys_without_root(self, connection: sa.Connection, kinds: Iterable[str]) -> list[Key]:
        """Return records saved by a release without roots.

        Only fold version 1 shares rows with such a release.
        """
        if self.fold_version != 1:
            return []
        c = SNAPSHOTS.c
        query = sa.select(c.kind, c.id).where(
            c.owner == self._row_owner, c.root.is_(None), c.kind.in_(list(kinds))
        )
        return [(kind, self._types[kind][0](id)) for kind, id in connection.execute(query)]

    def _no_pages(self, connection: sa.Connection) -> Pages:
        dropped = position_of(connection, self._row_owner, DELETION_KIND)
        return Pages(self.positions(connection), dropped, rebuilt_for=self.rebuilt_for(connection))

    def rebuilt_for(self, connection: sa.Connection) -> int:
        """Return the position of the request for which the database was last emptied; 0 if never."""
        return self.rebuild_rows.served(connection)

    def _in_roots(self, roots: list[str]) -> sa.ColumnElement[bool]:
        return sa.and_(SNAPSHOTS.c.owner == self._row_owner, SNAPSHOTS.c.root.in_(roots))

    def _set_evicted(self, connection: sa.Connection, roots: Iterable[str], away: int) -> None:
        """Mark roots as loaded (0) or not loaded (1) by the next start."""
        for some in id_batches(roots):
            row = {"of_owner": self._row_owner, "of_roots": some, "new_away": away}
            connection.execute(_MARKING, row)

    def save(
        self,
        connection: sa.Connection,
        records: Mapping[Key, Any],
        positions: Mapping[str, int],
        marks: Mapping[str, Mark] | None = None,
        roots: Mapping[Key, str] | None = None,
        evicted: Collection[str] = (),
        *,
        dropped: bool = False,
        stored: Mapping[str, int] | None = None,
    ) -> bool:
        """Store changed records together with the positions and the marks that identify the log.

        `roots` maps records to their roots. `evicted` lists roots that a start need not load, unless one of
        their records changed here. `dropped` says whether a record with a root was deleted. `stored` are the
        stored positions, if the caller has read and locked them. Returns False and stores nothing if another
        replica has already stored a later state.
        """
        if stored is None:
            stored = self.positions(connection, for_update=True)
        if any(stored.get(stream, 0) > position for stream, position in positions.items()):
            return False
        roots = roots or {}
        self._set_evicted(connection, evicted, 1)
        # After the evictions: a root that was evicted and then changed again is in memory, and the next
        # start needs it.
        self._set_evicted(connection, {roots[key] for key in records if key in roots}, 0)
        at = sum(positions.values())
        rows = [
            _row(self._row_owner, kind, str(id), record, roots.get((kind, id)), at)
            for (kind, id), record in records.items()
            if record is not None
        ]
        rows += [_row(self._row_owner, DELETION_KIND, "", None, position=at)] * dropped
        # Under the owner's bare name: every fold version reads the same log, and must recognise it.
        rows += [_row(self.owner, MARKS_KIND, stream, mark) for stream, mark in (marks or {}).items()]
        upsert(connection, SNAPSHOTS, rows)
        self._delete_records(connection, (key for key, record in records.items() if record is None))
        upsert(
            connection,
            POSITIONS,
            [{"owner": self._row_owner, "stream": s, "position": p} for s, p in positions.items()],
        )
        return True

    def positions(self, connection: sa.Connection, *, for_update: bool = False) -> dict[str, int]:
        """Return the stored position of each stream.

        `for_update` locks out other replicas until this one has stored.
        """
        query = _LOCKED_POSITIONS if for_update else _POSITIONS
        rows = connection.execute(query, {"of_owner": self._row_owner})
        return {stream: position for stream, position in rows}

    def other_fold_versions(self, connection: sa.Connection) -> list[int]:
        """Return the other fold versions that have stored a state."""
        row_owners = connection.execute(sa.select(POSITIONS.c.owner).distinct()).scalars()
        return sorted({_version(rows) for rows in row_owners} - {self.fold_version})

    def delete_all(self, connection: sa.Connection, request: int = 0) -> bool:
        """Delete what all versions have stored.

        With `request`, that is for the request at this position of CONTROL: returns False, and deletes
        nothing, if it was done for it already.
        """
        if request:
            self.positions(connection, for_update=True)
            # Under the lock of the positions: of two replicas that fold the same request, the second finds it
            # served.
            if self.rebuilt_for(connection) >= request:
                return False
            self.rebuild_rows.mark_served(connection, request)
        for version in (self.fold_version, *self.other_fold_versions(connection)):
            self._delete_version(connection, version)
        return True

    def delete_older(self, connection: sa.Connection) -> None:
        """Delete the snapshots of all older versions but the last, which is kept for a rollback."""
        older = [version for version in self.other_fold_versions(connection) if version < self.fold_version]
        for version in older[:-1]:
            self._delete_version(connection, version)

    def marks(self, connection: sa.Connection) -> dict[str, Mark]:
        """Return, per stream, a message that was read before the snapshot was stored."""
        query = sa.select(SNAPSHOTS.c.id, SNAPSHOTS.c.body).where(
            SNAPSHOTS.c.owner == self.owner, SNAPSHOTS.c.kind == MARKS_KIND
        )
        return {stream: msgspec.json.decode(body, type=Mark) for stream, body in connection.execute(query)}

    def _delete_records(self, connection: sa.Connection, keys: Iterable[Key]) -> None:
        rows = [{"owner": self._row_owner, "kind": kind, "id": str(id)} for kind, id in keys]
        delete_matching(connection, SNAPSHOTS, rows)

    def _delete_version(self, connection: sa.Connection, version: int) -> None:
        rows = _row_owner(self.owner, version)
        # Without the request's row it would be served again when it is folded again; without the marks
        # another log would be taken for this one.
        retained = SNAPSHOTS.c.kind.in_((MARKS_KIND, BEGUN))
        connection.execute(sa.delete(SNAPSHOTS).where(SNAPSHOTS.c.owner == rows, ~retained))
        connection.execute(sa.delete(POSITIONS).where(POSITIONS.c.owner == rows))


def _snapshots_by_loaded(connection: sa.Connection) -> sa.FromClause | sa.TextClause:
    """The table of snapshots, by the index of what a start loads.

    Another index begins with the owner, too, and SQLite takes either, by which was made first: by that one it
    would go through all that is away. SQLAlchemy has no hint for it.
    """
    if connection.dialect.name == "sqlite":
        return sa.text(f"{SNAPSHOTS.name} INDEXED BY {LOADED_INDEX.name}")
    return SNAPSHOTS


def _row_owner(owner: str, version: int) -> str:
    return owner if version == 1 else f"{owner}@{version}"


def _version(row_owner: str) -> int:
    return int(row_owner.partition("@")[2] or 1)


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


def _is_valid_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
