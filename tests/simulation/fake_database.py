"""Stands in for a service's database: encoded snapshots, of which older ones are kept to go back to."""

import asyncio
import json
from functools import cache

import msgspec

from services.kit.rules import dump, record_types
from services.kit.snapshot import Pages
from services.kit.snapshot_store import DatabaseSaver

VERSIONS = 6


class FakeDatabase:
    """What one service has saved, shared by its replicas. Replaces `database.Database`."""

    def __init__(self, chance):
        self.records = {}
        self.roots = {}
        """For each record of a root: the root, whether it is paged out, and where it was saved."""
        self.dropped = 0
        self.positions = {}
        self.rows = {}
        """Content of lists; see `gateway.project`."""
        self.refuses = None
        """Id of an event that cannot be written."""
        self._older = []
        self._chance = chance

    async def read(self, work):
        await asyncio.sleep(0.01 * self._chance.random())
        return work(self)

    def read_blocking(self, work):
        return work(self)

    async def write(self, work):
        await asyncio.sleep(0.05 * self._chance.random())
        before = self._copy() if self.refuses is not None else None
        try:
            stored = work(self)
        except Exception:
            if before is not None:
                self.records, self.roots, self.dropped, self.positions, self.rows = before
            raise
        if stored:
            self.keep_version()
        return stored

    def keep_version(self):
        self._older = [*self._older[1 - VERSIONS :], self._copy()]

    def _copy(self):
        return dict(self.records), dict(self.roots), self.dropped, dict(self.positions), dict(self.rows)

    def lose_newest_commits(self, chance):
        """Lose a random number of the newest commits; sometimes all of them."""
        if self._older and chance.random() < 0.7:
            (self.records, self.roots, self.dropped, self.positions, self.rows) = chance.choice(self._older)
        else:
            self.empty()
        self._older = []

    def empty(self):
        """Lose everything that was committed."""
        self.records, self.roots, self.dropped, self.positions, self.rows = {}, {}, 0, {}, {}


@cache
def _codecs(state):
    types = record_types(state)
    return types, {kind: msgspec.json.Decoder(record) for kind, (_, record) in types.items()}


def _by_key(item):
    return str(item[0])


class NoRebuilds:
    """Nobody asks for a rebuild in the simulation."""

    def served(self, database):
        return 0

    def due(self, database):
        return 0

    def mark_due(self, database, request):
        assert not request


class FakeSnapshot:
    """`database.Snapshot` over a shelf: the same encoding, the same refusals."""

    def __init__(self, state):
        self.rebuild_rows = NoRebuilds()
        self._state = state
        self._types, self._decoders = _codecs(state)

    def load(self, database, whole=False):
        """The state; with `whole`, also what a start leaves paged out."""
        tables = {kind: {} for kind in self._types}
        for (kind, key), body in database.records.items():
            if whole or not database.roots.get((kind, key), ("", False, 0))[1]:
                tables[kind][self._types[kind][0](key)] = self.decoded(kind, body)
        return self._state(**tables), dict(database.positions)

    def keys_without_root(self, database, kinds):
        return []

    def pages(self, database, keys, roots, is_loaded):
        wanted = set(roots) | {database.roots[k, str(i)][0] for k, i in keys if (k, str(i)) in database.roots}
        pages = Pages(dict(database.positions), database.dropped)
        for (kind, key), (root, _, position) in database.roots.items():
            if root in wanted and not is_loaded(root):
                record = self.decoded(kind, database.records[kind, key])
                pages.records.setdefault(root, {})[kind, self._types[kind][0](key)] = record
                pages.last_save = max(pages.last_save, position)
        return pages

    def decoded(self, kind, body):
        return self._decoders[kind].decode(body)

    def save(
        self, database, records, positions, marks=None, roots=None, away=(), *, dropped=False, stored=None
    ):
        if any(database.positions.get(stream, 0) > at for stream, at in positions.items()):
            return False
        roots = roots or {}
        self._move(database, away, True)
        self._move(database, {roots[key] for key in records if key in roots}, False)
        for (kind, key), record in sorted(records.items(), key=_by_key):
            if record is None:
                database.records.pop((kind, str(key)), None)
                database.roots.pop((kind, str(key)), None)
                continue
            database.records[kind, str(key)] = msgspec.json.encode(record)
            if (kind, key) in roots:
                database.roots[kind, str(key)] = roots[kind, key], False, sum(positions.values())
        database.positions.update(positions)
        database.dropped = sum(positions.values()) if dropped else database.dropped
        return True

    def _move(self, database, roots, away):
        if not roots:
            return
        for key, (root, _, position) in list(database.roots.items()):
            if root in roots:
                database.roots[key] = root, away, position

    def positions(self, database, *, for_update=False):
        return dict(database.positions)

    def rebuilt_for(self, database):
        return 0

    def delete_older(self, database):
        """Do nothing: there is only one version of each fold here."""


class FakeSaver(DatabaseSaver):
    """The real saver, saving to a shelf; needs `world.parts`."""

    def __init__(self, database, owner, state, is_leader, measures, **more):
        super().__init__(database, owner, state, is_leader=is_leader, measures=measures, **more)


class Copies:
    """Copies of a state, as a replica would load it; unchanged records are copied only once."""

    def __init__(self, state):
        self._snapshot = FakeSnapshot(state)
        self._state = state
        self._copies = {}
        self._order = {}
        """Per table, its keys in two orders: as they were put in, and as `of` puts them."""

    def of(self, live):
        """What a replica that starts from this state would load."""
        tables = {kind: {} for kind in _codecs(self._state)[0]}
        previous_copies, self._copies = self._copies, {}
        for kind, table in tables.items():
            records = getattr(live, kind)
            for key in self._ordered(kind, list(records)):
                record, entry = dict.__getitem__(records, key), previous_copies.get((kind, key))
                if entry is None or entry[0] is not record:
                    entry = record, self._snapshot.decoded(kind, msgspec.json.encode(record))
                self._copies[kind, key] = entry
                table[key] = entry[1]
        return self._state(**tables)

    def _ordered(self, kind, keys):
        """The keys in an arbitrary order, as a database may return them."""
        last = self._order.get(kind)
        if last is None or last[0] != keys:
            last = self._order[kind] = keys, sorted(keys, key=str)
        return last[1]


def whole(rules, state, database, pager):
    """A replica's state with its paged-out records, for comparison; the result has no indexes."""
    if pager is None:
        return state
    types, decoders = _codecs(rules.state)
    tables = {kind: dict(getattr(state, kind)) for kind in types}
    for (kind, key), (root, _, _) in database.roots.items():
        if not pager.is_loaded(root):
            tables[kind][types[kind][0](key)] = decoders[kind].decode(database.records[kind, key])
    whole_state = object.__new__(rules.state)
    vars(whole_state).update(tables)
    return whole_state


def _written(state):
    return json.loads(json.dumps(dump(state), default=str))


def states_differ(actual, right):
    """Whether two states differ in their records, treating tuples and lists as equal."""
    return any(getattr(actual, name) != getattr(right, name) for name in _codecs(type(right))[0]) and (
        _written(actual) != _written(right)
    )
