"""A service's database without a database: snapshots as they are encoded, older ones kept to go back to."""

import asyncio
from functools import cache

import msgspec

from services.kit.rules import record_types
from services.kit.saving import DatabaseSaver

VERSIONS = 6


class Shelf:
    """What one service has saved; shared by its replicas. Stands where `database.Database` would."""

    def __init__(self, chance):
        self.records = {}
        self.positions = {}
        self._older = []
        self._chance = chance

    async def read(self, work):
        await asyncio.sleep(0.01 * self._chance.random())
        return work(self)

    async def write(self, work):
        await asyncio.sleep(0.05 * self._chance.random())
        return work(self)

    def keep_version(self):
        self._older = [*self._older[1 - VERSIONS :], (dict(self.records), dict(self.positions))]

    def go_back(self, chance):
        """Lose the newest commits, as many as chance says; now and then all of them."""
        if self._older and chance.random() < 0.7:
            self.records, self.positions = chance.choice(self._older)
            self.records, self.positions = dict(self.records), dict(self.positions)
        else:
            self.records, self.positions = {}, {}
        self._older = []


@cache
def _codecs(state):
    types = record_types(state)
    return types, {kind: msgspec.json.Decoder(record) for kind, (_, record) in types.items()}


class ShelfSnapshot:
    """`database.Snapshot` over a shelf: the same encoding, the same refusals."""

    def __init__(self, state):
        self._state = state
        self._types, self._decoders = _codecs(state)

    def load(self, shelf):
        tables = {kind: {} for kind in self._types}
        for (kind, key), body in shelf.records.items():
            tables[kind][self._types[kind][0](key)] = self._decoders[kind].decode(body)
        return self._state(**tables), dict(shelf.positions)

    def save(self, shelf, records, positions, marks=None):
        if any(shelf.positions.get(stream, 0) > at for stream, at in positions.items()):
            return False
        for (kind, key), record in sorted(records.items(), key=str):
            if record is None:
                shelf.records.pop((kind, str(key)), None)
            else:
                shelf.records[kind, str(key)] = msgspec.json.encode(record)
        shelf.positions.update(positions)
        shelf.keep_version()
        return True

    def positions(self, shelf, *, hold=False):
        return dict(shelf.positions)


class ShelfSaver(DatabaseSaver):
    """The real saver, saving to a shelf."""

    def __init__(self, shelf, owner, state, leading):
        super().__init__(shelf, owner, state, leading=leading)
        self._snapshot = ShelfSnapshot(state)
