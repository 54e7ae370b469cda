"""Waiting for what records say: whoever waits is looked after when a record moves that they named.

There is no lock, and no task that could be cancelled at the wrong moment: a waiter is a future. Waiters are
looked after in slices with turns of the loop between them, so that thousands of them delay nobody.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from services.catalogue.domain import State
from services.kit.roots import loaded
from services.kit.rules import Key

AT_ONCE = 200
"""Waiters that are looked after in one turn of the loop."""
WITHIN = "within"
"""`(WITHIN, 7)` moves with experiment 7 and with each of its trials."""


class Fact(NamedTuple):
    """Something that records say, or will say."""

    holds: Callable[[State], bool]
    keys: tuple[Key, ...]
    """The records that can bring it about, and nothing else can."""


class _Waiter:
    """Somebody, and what they wait for."""

    __slots__ = ("future", "holds", "queued")

    def __init__(self, holds: Callable[[State], bool]) -> None:
        self.holds = holds
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.queued = False
        """Whether it is among those that are looked after next."""


class Waiting:
    """Everybody who waits for something that records of one state say."""

    def __init__(self, state: Callable[[], State]) -> None:
        self._state = state
        self._waiters: defaultdict[Key, dict[_Waiter, None]] = defaultdict(dict)
        """By the record that they named."""
        self._moved: deque[_Waiter] = deque()
        """Those whose record moved since they were looked after."""
        self.looking = False
        """Whether some of them are to be looked after in the next turn of the loop."""

    def __len__(self) -> int:
        return len(set().union(*self._waiters.values())) if self._waiters else 0

    def note(self, keys: Iterable[Key]) -> None:
        """These records were folded."""
        if not self._waiters:
            return
        for key in keys:
            for one in _concerned(self._state(), key):
                for waiter in self._waiters.get(one, ()):
                    if not waiter.queued:
                        waiter.queued = True
                        self._moved.append(waiter)
        self._begin()

    async def until(self, fact: Fact) -> None:
        """Wait until it holds; raises what its function raises."""
        if fact.holds(self._state()):
            return
        waiter = _Waiter(fact.holds)
        for key in fact.keys:
            self._waiters[key][waiter] = None
        try:
            await waiter.future
        finally:
            for key in fact.keys:
                self._forget(key, waiter)

    def _forget(self, key: Key, waiter: _Waiter) -> None:
        waiters = self._waiters.get(key)
        if waiters is not None:
            waiters.pop(waiter, None)
            if not waiters:
                del self._waiters[key]

    def _begin(self) -> None:
        if self._moved and not self.looking:
            self.looking = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        state = self._state()
        for _ in range(min(AT_ONCE, len(self._moved))):
            waiter = self._moved.popleft()
            waiter.queued = False
            if not waiter.future.done():
                _settle(waiter, state)
        self.looking = False
        self._begin()


def _settle(waiter: _Waiter, state: State) -> None:
    try:
        if waiter.holds(state):
            waiter.future.set_result(None)
    except Exception as error:
        # What asks wrongly fails for its asker alone.
        waiter.future.set_exception(error)


def _concerned(state: State, key: Key) -> Iterator[Key]:
    yield key
    kind, id = key
    if kind == "experiments":
        yield WITHIN, id
    elif kind == "trials" and (trial := loaded(state.trials, id)) is not None:
        yield WITHIN, trial.experiment_id
