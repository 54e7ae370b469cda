"""Decides which roots are in memory: loads those that are needed and evicts those at rest.

A root is at rest when it is over, its records call for no decision, and all of it is saved. The most recently
changed roots stay, as many as there is room for. The database is newer than the state folded here only if
another replica leads and this one is behind. Where that matters, the whole state is reloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from services.kit.database import Unreadable, in_words
from services.kit.recent import Recent
from services.kit.roots import Key, PagedTable, PageFault, Roots, loaded
from services.kit.rules import Rules
from services.kit.snapshot import Pages, Snapshot
from services.kit.snapshot_store import DatabaseSaver

S = TypeVar("S")
ROOM = 10_000
"""Number of records in paged tables that stay loaded although they are at rest."""
LATELY = 100
"""Number of portions for which a root stays after it changed, however little room there is: it may change
again."""
AT_ONCE = 1_000
"""Number of records evicted after one folded portion. The last root is always evicted whole."""
REMEMBERED = 20_000
"""Number of roots and records known not to be in the database, so that they are not looked up again."""


class Pager(Generic[S]):
    """Loads and evicts the records of one state."""

    def __init__(
        self,
        rules: Rules[S],
        saver: DatabaseSaver,
        roots: Roots[S],
        *,
        faulted: Callable[[PageFault], None],
        room: int | None = None,
    ) -> None:
        """`faulted` is called with each `PageFault` before it is raised. `room` overrides `ROOM`."""
        self._rules = rules
        self._saver = saver
        self._roots = roots
        self._faulted = faulted
        self._room = ROOM if room is None else room
        self._lately = min(LATELY, self._room // 100)
        self._state: S = rules.state()
        self._positions: Mapping[str, int] = {}
        self._here: set[str] = set()
        """Loaded roots. A record of theirs that is not found does not exist."""
        self._moved: dict[str, int] = {}
        """Roots that may be at rest, with the portion in which each last changed, oldest first."""
        self._dropped = 0
        """The last portion that deleted a record whose root is no longer known."""
        self._empty = Recent[str, None](REMEMBERED)
        """Roots that were looked up and have no records. Folding one of their records removes them."""
        self._absent = Recent[Key, None](REMEMBERED)
        """Records of unknown roots that were looked up and do not exist. Folding one removes it."""
        self.brought, self.left = 0, 0
        """Number of roots loaded from the database, and of roots evicted."""
        self._begun = 0
        """How often a whole state was loaded."""

    def begin(self, state: S, positions: Mapping[str, int]) -> None:
        """Take charge of a freshly loaded state.

        `positions` is updated by its owner as the state is folded.
        """
        self._state, self._positions = state, positions
        self._begun += 1
        self._here, self._moved = set(), {}
        self._empty, self._absent = Recent(REMEMBERED), Recent(REMEMBERED)
        for table in self._roots.of:
            known = getattr(state, table)
            setattr(state, table, PagedTable(known, partial(self._load, table)))
            for id in known:
                self._note((table, id), self._saver.folded)

    def moved(self, keys: Iterable[Key]) -> None:
        """Note the records that the current portion stored or deleted."""
        for key in keys:
            self._note(key, self._saver.folded + 1)

    def _note(self, key: Key, portion: int) -> None:
        if key[0] not in self._roots.of:
            for told in self._roots.beside.get(key[0], _none)(key[1]):
                if told in self._here:
                    self._moved.pop(told, None)
                    self._moved[told] = portion
            return
        self._absent.pop(key, None)
        root = self._roots.root_of(self._state, key)
        if root is not None:
            self._here.add(root)
            self._empty.pop(root, None)
            self._moved.pop(root, None)
            self._moved[root] = portion
        elif loaded(getattr(self._state, key[0]), key[1]) is None:
            self._dropped = portion

    def is_loaded(self, root: str) -> bool:
        """Whether a root is in memory."""
        return root in self._here

    async def bring(self, messages: Iterable[Any]) -> None:
        """Have the records loaded that some events, commands or queries name, where there are such."""
        wanted = list[Key]()
        for one in messages:
            begun = self._roots.begins.get(type(one))
            if begun is not None:
                # Nobody has to ask the database for what was never there.
                self._note_absent([(self._roots.named_by[begun], getattr(one, begun))])
            wanted.extend(self._roots.names(one))
        await self.fetch(wanted)

    async def fetch(self, keys: Iterable[Key]) -> None:
        """Have some records loaded, with all of their roots, where there are such."""
        wanted = {key for key in keys if self._is_missing(key)}
        while wanted:
            changes = self._changes()
            unknown, roots = self._sorted_out(wanted)
            pages = await self._asked(self._whole(unknown, roots))
            if changes == self._changes():
                self._put(pages)
                self._note_absent(wanted)
                return
            # What was read may have been changed, saved and let go of again meanwhile.

    def _changes(self) -> tuple[int, int, int]:
        return self.brought, self.left, self._begun

    async def look(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Read single records only to show them, without loading their roots into memory.

        A list shows one trial each of a hundred finished experiments, which may have very many trials.
        """
        wanted = set(keys)
        missing = [key for key in wanted if self._is_missing(key)]
        read = await self._asked(lambda s, c: s.alone(c, missing)) if missing else Pages({})
        found = {key: one for records in read.records.values() for key, one in records.items()}
        # Records in memory may have changed since they were read.
        here = {key: loaded(getattr(self._state, key[0]), key[1]) for key in wanted}
        return found | {key: one for key, one in here.items() if one is not None}

    def _note_absent(self, keys: Iterable[Key]) -> None:
        """Remember which of these records do not exist, until folding creates them.

        Only this fold can create them: anything another replica has saved since belongs to a position that
        this one has not reached, and everything this one evicts was loaded before.
        """
        for key in keys:
            if self._is_missing(key):
                root = self._roots.root_of(self._state, key)
                if root is None:
                    self._absent[key] = None
                else:
                    # Roots are loaded whole, so no other record of this root exists either.
                    self._empty[root] = None

    def let_go(self, touched: dict[Key, str], parked: Collection[Key]) -> None:
        """Evict roots at rest while there are too many records, and remove their keys from `touched`."""
        gone = 0
        while gone < AT_ONCE:
            root = next(iter(self._moved), None)
            if root is None or self._records() <= self._room:
                return
            if self._saver.folded - self._moved[root] < self._lately:
                return
            if not self._saver.is_kept(max(self._moved[root], self._dropped)):
                return
            del self._moved[root]
            gone += 1
            members = iter(self._roots.members(self._state, root))
            first = next(members, None)
            if first is None:
                self._here.discard(root)
            elif self._roots.is_over(self._state, root):
                # Only now, because a root that is not over may have very many members.
                keys = [first, *members]
                gone += len(keys)
                if self._call_for_nothing(keys, parked):
                    self._drop(root, keys)
                    for key in keys:
                        touched.pop(key, None)

    def _records(self) -> int:
        return sum(len(getattr(self._state, table)) for table in self._roots.of)

    def _call_for_nothing(self, keys: list[Key], parked: Collection[Key]) -> bool:
        return not any(key in parked or self._rules.react(self._state, key) for key in keys)

    def _drop(self, root: str, keys: list[Key]) -> None:
        self.left += 1
        self._roots.unindex(self._state, keys)
        for table, id in keys:
            dict.pop(getattr(self._state, table), id, None)
        self._here.discard(root)
        self._saver.let_go(root)

    def _put(self, pages: Pages) -> None:
        for root, records in pages.records.items():
            if root in self._here:
                continue
            self.brought += 1
            for (table, id), record in records.items():
                dict.__setitem__(getattr(self._state, table), id, record)
                self._absent.pop((table, id), None)
            self._roots.index(self._state, records.keys())
            self._here.add(root)
            self._empty.pop(root, None)
            self._moved[root] = self._saver.folded

    def _load(self, table: str, id: Any) -> bool:
        """Load the root of a record that a rule looks up. Returns whether the record exists."""
        key = (table, id)
        if not self._may_be_away(key):
            return False
        keys, roots = self._sorted_out([key])
        try:
            pages = self._saver.pages_now(keys, roots, self._here.__contains__)
        except (sa.exc.SQLAlchemyError, Unreadable) as error:
            raise self._fault(_told(error)) from error
        self._put(self._checked(pages))
        # A round may look for thousands of records of a root that it is about to make.
        self._note_absent([key])
        return loaded(getattr(self._state, table), id) is not None

    def _is_missing(self, key: Key) -> bool:
        return loaded(getattr(self._state, key[0]), key[1]) is None and self._may_be_away(key)

    def _may_be_away(self, key: Key) -> bool:
        root = self._roots.of[key[0]](self._state, key[1])
        if root is None:
            return key not in self._absent
        return root != "" and root not in self._here and root not in self._empty

    def _sorted_out(self, keys: Iterable[Key]) -> tuple[list[Key], set[str]]:
        """Return the keys whose roots only the database knows, and the known roots of the others."""
        unknown, roots = list[Key](), set[str]()
        for key in keys:
            root = self._roots.root_of(self._state, key)
            if root is None:
                unknown.append(key)
            else:
                roots.add(root)
        return unknown, roots

    def _whole(self, keys: list[Key], roots: set[str]) -> Callable[[Snapshot, sa.Connection], Pages]:
        return lambda snapshot, c: snapshot.pages(c, keys, roots, self._here.__contains__)

    async def _asked(self, question: Callable[[Snapshot, sa.Connection], Pages]) -> Pages:
        try:
            return self._checked(await self._saver.ask(question))
        except (sa.exc.SQLAlchemyError, Unreadable) as error:
            raise self._fault(_told(error)) from error

    def _checked(self, pages: Pages) -> Pages:
        if pages.changed_after(self._positions):
            there, here = pages.positions, dict(self._positions)
            raise self._fault(f"another replica has saved what is looked for, up to {there}; here is {here}")
        return pages

    def _fault(self, why: str) -> PageFault:
        fault = PageFault(why)
        self._faulted(fault)
        return fault


def _none(_: Any) -> tuple[str, ...]:
    return ()


def _told(error: Exception) -> str:
    return in_words(error) if isinstance(error, sa.exc.DBAPIError) else str(error)
