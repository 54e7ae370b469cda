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
from services.kit.roots import get_loaded
from services.kit.rules import Key

MAX_CHECKS_PER_TURN = 200
"""Maximum number of waiters checked per turn of the event loop."""
EXPERIMENT_OR_TRIALS = "within"
"""`(EXPERIMENT_OR_TRIALS, 7)` changes whenever experiment 7 or one of its trials changes."""


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


class Waiters:
    """All callers that wait for conditions on one state."""

    def __init__(self, state: Callable[[], State], is_behind: Callable[[], bool] = lambda: False) -> None:
        """While the state `is_behind` what it was, no condition is checked."""
        self._state = state
        self._is_behind = is_behind
        self._waiters: defaultdict[Key, dict[_Waiter, None]] = defaultdict(dict)
        """Waiters by the records they depend on."""
        self._to_check: deque[_Waiter] = deque()
        """Waiters with a record that changed since they were last checked."""
        self.is_check_scheduled = False
        """Whether a check is scheduled for the next turn of the event loop."""

    def __len__(self) -> int:
        return len(set().union(*self._waiters.values())) if self._waiters else 0

    def on_records_changed(self, keys: Iterable[Key]) -> None:
        """Queue the waiters of folded records to be checked."""
        if not self._waiters:
            return
        for key in keys:
            for affected_key in _affected_keys(self._state(), key):
                self._queue(affected_key)
        self._schedule_check()

    def on_reload(self) -> None:
        """Queue all waiters: what they wait for may have happened before the state was loaded anew."""
        for key in self._waiters:
            self._queue(key)
        self._schedule_check()

    def _queue(self, key: Key) -> None:
        for waiter in self._waiters.get(key, ()):
            self._queue_waiter(waiter)

    def _queue_waiter(self, waiter: _Waiter) -> None:
        if not waiter.queued:
            waiter.queued = True
            self._to_check.append(waiter)

    def holds(self, fact: Fact) -> bool:
        """Whether a fact is known to hold.

        It is not while a state that was loaded anew lacks what was in it before: a run that has just begun
        would look like one that is over.
        """
        return not self._is_behind() and fact.holds(self._state())

    async def wait_until(self, fact: Fact) -> None:
        """Wait until the fact holds. Raises what its condition raises."""
        # There is no await between this check and the registration, so no event can be folded between them
        # and go unnoticed.
        if self.holds(fact):
            return
        waiter = _Waiter(fact.holds)
        for key in fact.keys:
            self._waiters[key][waiter] = None
        if self._is_behind():
            # It may hold already, and none of its records need change again.
            self._queue_waiter(waiter)
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

    def _schedule_check(self) -> None:
        if self._to_check and not self.is_check_scheduled:
            self.is_check_scheduled = True
            # Not here: this is called from within a fold's round, of which all records must be visible first.
            asyncio.get_running_loop().call_soon(self._check_some)

    def _check_some(self) -> None:
        self.is_check_scheduled = False
        if self._is_behind():
            # The portion with which it has caught up calls `on_records_changed`, too.
            return
        state = self._state()
        for _ in range(min(MAX_CHECKS_PER_TURN, len(self._to_check))):
            waiter = self._to_check.popleft()
            waiter.queued = False
            # The caller may have been cancelled since, and a cancelled future refuses a result.
            if not waiter.future.done():
                _check_waiter(waiter, state)
        self._schedule_check()


def _check_waiter(waiter: _Waiter, state: State) -> None:
    try:
        if waiter.holds(state):
            waiter.future.set_result(None)
    except Exception as error:
        # A defective condition fails only its own caller.
        waiter.future.set_exception(error)


def _affected_keys(state: State, key: Key) -> Iterator[Key]:
    yield key
    kind, id = key
    if kind == "experiments":
        yield EXPERIMENT_OR_TRIALS, id
    elif kind == "trials" and (trial := get_loaded(state.trials, id)) is not None:
        yield EXPERIMENT_OR_TRIALS, trial.experiment_id
