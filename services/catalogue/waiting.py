"""Lets requests wait for facts; a waiter is checked whenever one of its records changes.

There are no locks, and no tasks that could be cancelled at the wrong moment: a waiter is a future. Waiters
are checked in slices, between which the event loop runs other work, so that thousands of them delay nothing
else.
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
"""Maximum number of waiters checked per turn of the event loop."""
WITHIN = "within"
"""`(WITHIN, 7)` changes whenever experiment 7 or one of its trials changes."""


class Fact(NamedTuple):
    """A condition on the state that holds or will hold."""

    holds: Callable[[State], bool]
    keys: tuple[Key, ...]
    """The records on which the condition depends."""


class _Waiter:
    """A waiting caller and its condition."""

    __slots__ = ("future", "holds", "queued")

    def __init__(self, holds: Callable[[State], bool]) -> None:
        self.holds = holds
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.queued = False
        """Whether the waiter is queued to be checked."""


class Waiting:
    """All callers that wait for conditions on one state."""

    def __init__(self, state: Callable[[], State]) -> None:
        self._state = state
        self._waiters: defaultdict[Key, dict[_Waiter, None]] = defaultdict(dict)
        """Waiters by the records they depend on."""
        self._moved: deque[_Waiter] = deque()
        """Waiters with a record that changed since they were last checked."""
        self.looking = False
        """Whether a check is scheduled for the next turn of the event loop."""

    def __len__(self) -> int:
        return len(set().union(*self._waiters.values())) if self._waiters else 0

    def note(self, keys: Iterable[Key]) -> None:
        """Queue the waiters of folded records to be checked."""
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
        """Wait until the fact holds. Raises what its condition raises."""
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
        # A defective condition fails only its own caller.
        waiter.future.set_exception(error)


def _concerned(state: State, key: Key) -> Iterator[Key]:
    yield key
    kind, id = key
    if kind == "experiments":
        yield WITHIN, id
    elif kind == "trials" and (trial := loaded(state.trials, id)) is not None:
        yield WITHIN, trial.experiment_id
