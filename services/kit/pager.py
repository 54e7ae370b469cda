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

from services.kit.bounded_dict import BoundedDict
from services.kit.database import UnreadableRecord, error_text
from services.kit.roots import ALWAYS_LOADED, Key, PagedTable, PageFault, Roots, get_loaded
from services.kit.rules import Rules
from services.kit.snapshot import Pages, Snapshot
from services.kit.snapshot_store import DatabaseSaver

S = TypeVar("S")
MAX_IDLE_RECORDS = 10_000
"""Number of records in paged tables that stay loaded although they are at rest."""
MIN_IDLE_PORTIONS = 100
"""Number of portions for which a root stays after it changed, however little room there is: it may change
again."""
MAX_EVICTED = 1_000
"""Number of records evicted after one folded portion. The last root is always evicted whole."""
MAX_KNOWN_ABSENT = 20_000
"""Number of roots and records known not to be in the database, so that they are not looked up again."""


class Pager(Generic[S]):
    """Loads and evicts the records of one state."""

    def __init__(
        self,
        rules: Rules[S],
        saver: DatabaseSaver,
        roots: Roots[S],
        *,
        on_fault: Callable[[PageFault], None],
        calls_for_decision: Callable[[S, Key], bool],
        max_idle_records: int | None = None,
    ) -> None:
        """`on_fault` is called with each `PageFault` before it is raised. `calls_for_decision` says whether a
        record needs one or cannot be decided on. `max_idle_records` overrides `MAX_IDLE_RECORDS`."""
        self._calls_for_decision = calls_for_decision
        self._saver = saver
        self._roots = roots
        self._on_fault = on_fault
        self._max_idle_records = MAX_IDLE_RECORDS if max_idle_records is None else max_idle_records
        self._min_idle_portions = min(MIN_IDLE_PORTIONS, self._max_idle_records // 100)
        self._state: S = rules.state()
        self._positions: Mapping[str, int] = {}
        self._loaded_roots: set[str] = set()
        """Loaded roots. A record of theirs that is not found does not exist."""
        self._last_change: dict[str, int] = {}
        """Roots that may be at rest, with the portion in which each last changed, oldest first."""
        self._last_orphan_delete = 0
        """The last portion that deleted a record whose root is no longer known."""
        self._empty_roots = BoundedDict[str, None](MAX_KNOWN_ABSENT)
        """Roots that were looked up and have no records. Folding one of their records removes them."""
        self._absent_records = BoundedDict[Key, None](MAX_KNOWN_ABSENT)
        """Records of unknown roots that were looked up and do not exist. Folding one removes it."""
        self.roots_loaded, self.roots_evicted = 0, 0
        """Number of roots loaded from the database, and of roots evicted."""
        self._states_loaded = 0
        """How often a whole state was loaded."""

    def attach(self, state: S, positions: Mapping[str, int]) -> None:
        """Take charge of a freshly loaded state.

        `positions` is updated by its owner as the state is folded.
        """
        self._state, self._positions = state, positions
        self._states_loaded += 1
        self._loaded_roots, self._last_change = set(), {}
        self._empty_roots, self._absent_records = BoundedDict(MAX_KNOWN_ABSENT), BoundedDict(MAX_KNOWN_ABSENT)
        for table in self._roots.root_lookups:
            records = getattr(state, table)
            # The state was loaded with plain dictionaries; from here on a record that is looked up and not
            # there is loaded.
            load = partial(self._load_root_of, self._states_loaded, table)
            setattr(state, table, PagedTable(records, load, partial(self._record_absent, table)))
            for id in records:
                self._record_change((table, id), self._saver.portions.folded)

    def load_named(self, keys: Iterable[Key]) -> None:
        """Load records that an event only names, to have them decided on again.

        What is not in memory would be saved as deleted otherwise. Raises `PageFault`.
        """
        lookups, state = self._roots.root_lookups, self._state
        for table, id in keys:
            find = lookups.get(table)
            if find is None or get_loaded(getattr(state, table), id) is not None:
                continue
            root = find(self._state, id)
            # What was deleted just now had been loaded before, with its root.
            if root and root not in self._loaded_roots and root not in self._empty_roots:
                self._load_root(table, id)

    def record_changes(self, keys: Iterable[Key]) -> None:
        """Note the records that the current portion stored or deleted."""
        # The portion that is being folded: the saver counts it once it is complete.
        portion = self._saver.portions.folded + 1
        lookups, last_change = self._roots.root_lookups, self._last_change
        for key in keys:
            find = lookups.get(key[0])
            # A root changes many times in a portion, and only the first time moves it.
            if find is None or last_change.get(find(self._state, key[1]) or ALWAYS_LOADED) != portion:
                self._record_change(key, portion)
            elif self._absent_records:
                self._absent_records.pop(key, None)

    def _record_change(self, key: Key, portion: int) -> None:
        if key[0] not in self._roots.root_lookups:
            for related in self._roots.affected_roots.get(key[0], _no_roots)(key[1]):
                if related in self._loaded_roots:
                    # Taken out first, so that it is put in at the end: the order of this dictionary is the
                    # order of eviction.
                    self._last_change.pop(related, None)
                    self._last_change[related] = portion
            return
        self._absent_records.pop(key, None)
        root = self._roots.root_of(self._state, key)
        if root is not None:
            self._loaded_roots.add(root)
            self._empty_roots.pop(root, None)
            self._last_change.pop(root, None)
            self._last_change[root] = portion
        elif get_loaded(getattr(self._state, key[0]), key[1]) is None:
            self._last_orphan_delete = portion

    def is_loaded(self, root: str) -> bool:
        """Whether a root is in memory."""
        return root in self._loaded_roots

    async def load_for(self, messages: Iterable[Any]) -> None:
        """Have the records loaded that some events, commands or queries name, where there are such."""
        if missing := self.missing(messages):
            await self.fetch(missing)

    def missing(self, messages: Iterable[Any]) -> set[Key]:
        """Return what some events, commands or queries name and may have to be loaded."""
        # Collected first: nearly all of what a trial does names the trial again.
        named, roots = set[Key](), self._roots
        for message in messages:
            if (created_key := roots.created_key(message)) is not None:
                # Nobody has to ask the database for what was never there.
                self._remember_absent([created_key])
            named.update(roots.referenced_keys(message))
        return set(filter(self._may_need_loading, named))

    async def fetch(self, keys: Iterable[Key]) -> None:
        """Have some records loaded, with all of their roots, where there are such."""
        missing = {key for key in keys if self._may_need_loading(key)}
        while missing:
            changes = self._load_counts()
            unknown, roots = self._split_by_root(missing)
            pages = await self._query(self._pages_query(unknown, roots))
            if changes == self._load_counts():
                self._insert(pages)
                self._remember_absent(missing)
                return
            # What was read may have been changed, saved and let go of again meanwhile.

    def _load_counts(self) -> tuple[int, int, int]:
        return self.roots_loaded, self.roots_evicted, self._states_loaded

    async def peek(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Read single records only to show them, without loading their roots into memory.

        A list shows one trial each of a hundred finished experiments, which may have very many trials.
        """
        wanted = set(keys)
        missing = [key for key in wanted if self._may_need_loading(key)]
        read = await self._query(lambda s, c: s.records(c, missing)) if missing else Pages({})
        # What is not in a root that is loaded was deleted, perhaps not in the database yet.
        absent = (records for root, records in read.records.items() if root not in self._loaded_roots)
        stored = {key: record for records in absent for key, record in records.items()}
        # Records in memory may have changed since they were read.
        here = {key: get_loaded(getattr(self._state, key[0]), key[1]) for key in wanted}
        return stored | {key: record for key, record in here.items() if record is not None}

    def _record_absent(self, table: str, id: Any) -> None:
        """Remember that a record does not exist: one that a round is about to create."""
        self._remember_absent([(table, id)])

    def _remember_absent(self, keys: Iterable[Key]) -> None:
        """Remember which of these records do not exist, until folding creates them.

        Only this fold can create them: anything another replica has saved since belongs to a position that
        this one has not reached, and everything this one evicts was loaded before.
        """
        for key in keys:
            if self._may_need_loading(key):
                root = self._roots.root_of(self._state, key)
                if root is None:
                    self._absent_records[key] = None
                else:
                    # Roots are loaded whole, so no other record of this root exists either.
                    self._empty_roots[root] = None

    def evict_idle(self, touched: dict[Key, str], parked: Collection[Key]) -> None:
        """Evict roots at rest while there are too many records, and remove their keys from `touched`."""
        evicted = 0
        while evicted < MAX_EVICTED:
            root = next(iter(self._last_change), None)
            if root is None or self._record_count() <= self._max_idle_records:
                return
            # The first root is the one that has not changed for longest, so no later one can have been idle
            # long enough.
            if self._saver.portions.folded - self._last_change[root] < self._min_idle_portions:
                return
            # A deleted record whose root is unknown may belong to this root. Loaded again before that is
            # saved, the root would come back with it.
            if not self._saver.is_saved(max(self._last_change[root], self._last_orphan_delete)):
                return
            # Whatever becomes of it below, it is not looked at again before one of its records changes.
            del self._last_change[root]
            evicted += 1
            members = iter(self._roots.members(self._state, root))
            first = next(members, None)
            if first is None:
                self._loaded_roots.discard(root)
            elif self._roots.is_over(self._state, root):
                # Only now, because a root that is not over may have very many members.
                keys = [first, *members]
                evicted += len(keys)
                if self._need_no_decision(keys, parked):
                    self._evict(root, keys)
                    for key in keys:
                        touched.pop(key, None)

    def _record_count(self) -> int:
        count = 0
        # No generator: this is asked after every portion.
        for table in self._roots.root_lookups:
            count += len(getattr(self._state, table))
        return count

    def _need_no_decision(self, keys: list[Key], parked: Collection[Key]) -> bool:
        return not any(key in parked or self._calls_for_decision(self._state, key) for key in keys)

    def _evict(self, root: str, keys: list[Key]) -> None:
        self.roots_evicted += 1
        # While the records are still there: the indexes are computed from them.
        self._roots.unindex(self._state, keys)
        for table, id in keys:
            # Not `PagedTable.pop`, which would load a record that has just been deleted.
            dict.pop(getattr(self._state, table), id, None)
        self._loaded_roots.discard(root)
        self._saver.record_eviction(root)

    def _insert(self, pages: Pages) -> None:
        for root, records in pages.records.items():
            # What is in memory is newer than what was read.
            if root in self._loaded_roots:
                continue
            self.roots_loaded += 1
            for (table, id), record in records.items():
                dict.__setitem__(getattr(self._state, table), id, record)
                self._absent_records.pop((table, id), None)
            self._roots.index(self._state, records.keys())
            self._loaded_roots.add(root)
            self._empty_roots.pop(root, None)
            # As if it had changed now, so that it stays for a while: whoever looks at it once usually looks
            # again.
            self._last_change[root] = self._saver.portions.folded

    def _load_root_of(self, states_loaded: int, table: str, id: Any) -> bool:
        """The same for whoever may look at a former state, having waited for something meanwhile."""
        if states_loaded != self._states_loaded:
            # Records are loaded into the present one, where this table does not find them.
            raise PageFault("it was reloaded in the meantime")
        return self._load_root(table, id)

    def _load_root(self, table: str, id: Any) -> bool:
        """Load the root of a record that a rule looks up. Returns whether the record exists."""
        key = (table, id)
        if not self._may_be_evicted(key):
            return False
        keys, roots = self._split_by_root([key])
        try:
            # Blocks the event loop, because rules are synchronous. That is rare: `load_for` has loaded what
            # events, commands and queries name.
            pages = self._saver.pages_blocking(keys, roots, self._loaded_roots.__contains__)
        except (sa.exc.SQLAlchemyError, UnreadableRecord) as error:
            raise self._fault(error_text(error)) from error
        self._insert(self._check_positions(pages))
        # A round may look for thousands of records of a root that it is about to make.
        self._remember_absent([key])
        return get_loaded(getattr(self._state, table), id) is not None

    def _may_need_loading(self, key: Key) -> bool:
        return get_loaded(getattr(self._state, key[0]), key[1]) is None and self._may_be_evicted(key)

    def _may_be_evicted(self, key: Key) -> bool:
        root = self._roots.root_lookups[key[0]](self._state, key[1])
        if root is None:
            return key not in self._absent_records
        # A root that is loaded is whole, so what is not found in it does not exist.
        return root != "" and root not in self._loaded_roots and root not in self._empty_roots

    def _split_by_root(self, keys: Iterable[Key]) -> tuple[list[Key], set[str]]:
        """Return the keys whose roots only the database knows, and the known roots of the others."""
        unknown, roots = list[Key](), set[str]()
        for key in keys:
            root = self._roots.root_of(self._state, key)
            if root is None:
                unknown.append(key)
            else:
                roots.add(root)
        return unknown, roots

    def _pages_query(self, keys: list[Key], roots: set[str]) -> Callable[[Snapshot, sa.Connection], Pages]:
        return lambda snapshot, c: snapshot.pages(c, keys, roots, self._loaded_roots.__contains__)

    async def _query(self, question: Callable[[Snapshot, sa.Connection], Pages]) -> Pages:
        try:
            return self._check_positions(await self._saver.query(question))
        except (sa.exc.SQLAlchemyError, UnreadableRecord) as error:
            raise self._fault(error_text(error)) from error

    def _check_positions(self, pages: Pages) -> Pages:
        if pages.may_differ_at(self._positions):
            there, here = pages.positions, dict(self._positions)
            raise self._fault(f"another replica has saved what is looked for, up to {there}; here is {here}")
        return pages

    def _fault(self, why: str) -> PageFault:
        fault = PageFault(why)
        self._on_fault(fault)
        return fault


def _no_roots(_: Any) -> tuple[str, ...]:
    return ()
