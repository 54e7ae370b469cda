"""How one result moves the trials of a halving bracket (searchers spec, 5.4 to 5.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from services.searcher.methods.protocol import WORST_METRIC, Close, Operation, ValidateAfter
from services.searcher.methods.ranking import Entry
from services.searcher.methods.rng import Rng
from services.searcher.methods.sampling import draw_trial

if TYPE_CHECKING:
    from services.searcher.methods.asha import AshaSearch


class BracketStep:
    """One step of a bracket: a working copy that becomes the next state."""

    def __init__(self, state: AshaSearch, rng: Rng) -> None:
        self._state = state
        self._rng = rng
        self._rungs = list(state.rungs)
        self._rung_of = state.rung_of
        self._awaited = state.awaited
        self._early = state.early
        self._closed = state.closed
        self._invalid = state.invalid
        self._operations: list[Operation] = []
        self._has_continued = False

    def result(self) -> tuple[AshaSearch, list[Operation]]:
        """The next state, and the requested operations."""
        state = msgspec.structs.replace(
            self._state,
            rungs=tuple(self._rungs),
            rung_of=self._rung_of,
            awaited=self._awaited,
            early=self._early,
            closed=self._closed,
            invalid=self._invalid,
        )
        return state, self._operations

    def create(self) -> None:
        """Create a trial in the lowest rung."""
        created = draw_trial(self._state.space, self._rng)
        self._operations.append(created)
        self._enter_rung(created.request_id, 0)

    def report(self, request_id: str, metric: float) -> None:
        """Handle a trial's result in its current rung."""
        index = self._rung_of[request_id]
        self._awaited = self._awaited.drop(request_id)
        self._rungs[index] = self._rungs[index].with_outstanding(-1)
        if index == len(self._rungs) - 1:
            self._enter_top_rung_result(request_id, metric)
        elif self._state.stop_once:
            self._stop_or_continue(request_id, metric, index)
        elif self._enter_and_promote(request_id, metric, index):
            return
        self._create_replacement()
        if not self._state.stop_once:
            self._close_losers()

    def record_exit(self, request_id: str) -> None:
        """The trial failed or was stopped: it ranks as the worst.

        A trial that waits for promotion keeps its result. A second result would make the rung look full, and
        the search would never end.
        """
        self._early = self._early.put(request_id, True)
        self._closed = self._closed.put(request_id, True)
        if request_id in self._awaited:
            self.report(request_id, WORST_METRIC)

    def withdraw(self, request_id: str) -> None:
        """The trial's hyperparameters are invalid: undo the trial, and let another one take its place."""
        self._early = self._early.put(request_id, True)
        if request_id not in self._closed:
            self._close(request_id)
        self._invalid += 1
        current = self._rung_of[request_id]
        awaited = request_id in self._awaited
        # In the rung that it has not reported in there is no result to remove.
        for index in range(current if awaited else current + 1):
            self._rungs[index] = self._rungs[index].without_trial(request_id)
        if awaited:
            self._awaited = self._awaited.drop(request_id)
            self._rungs[current] = self._rungs[current].with_outstanding(-1)
        self.create()

    def _enter_rung(self, request_id: str, index: int) -> None:
        """Place a trial in a rung, and let it train that far unless it has exited."""
        self._rung_of = self._rung_of.put(request_id, index)
        self._awaited = self._awaited.put(request_id, True)
        # The lowest rung counts a trial when it is announced (`trial_created`), all others at once.
        if index:
            self._rungs[index] = self._rungs[index].with_outstanding(1)
        if request_id not in self._early:
            self._operations.append(ValidateAfter(request_id, self._rungs[index].length))
            self._has_continued = True

    def _close(self, request_id: str) -> None:
        self._closed = self._closed.put(request_id, True)
        self._operations.append(Close(request_id))

    def _enter_top_rung_result(self, request_id: str, metric: float) -> None:
        top = self._rungs[-1]
        self._rungs[-1] = top.with_entry(top.entries.end_position(), Entry(metric, request_id))
        if request_id not in self._early:
            self._close(request_id)

    # -- the promoting variant (5.4)

    def _enter_and_promote(self, request_id: str, metric: float, index: int) -> bool:
        """Enter a result and promote the trial that may now climb.

        Returns whether that trial has exited, so all is done.
        """
        promoted = self._enter_result(request_id, metric, index)
        if promoted is None:
            return False
        self._enter_rung(promoted, index + 1)
        if promoted not in self._early:
            return False
        self.report(promoted, WORST_METRIC)
        return True

    def _enter_result(self, request_id: str, metric: float, index: int) -> str | None:
        """Enter a result in a rung. Returns the trial that may now climb, if any."""
        rung, divisor = self._rungs[index], self._state.divisor
        old, new = int(len(rung.entries) / divisor), int((len(rung.entries) + 1) / divisor)
        position = rung.entries.position(metric)
        is_promoted = position.rank < new
        self._rungs[index] = rung = rung.with_entry(position, Entry(metric, request_id, is_promoted))
        if is_promoted:
            return request_id
        if new == old:
            return None
        next_best = rung.entries.position_at(old)
        if not self._can_be_promoted(rung.entries[next_best]):
            return None
        self._rungs[index] = rung.with_promoted(next_best)
        return rung.entries[next_best].request_id

    def _can_be_promoted(self, entry: Entry) -> bool:
        # The replacement of an invalid trial can refill a rung whose losers were already closed.
        id = entry.request_id
        return not entry.promoted and (id not in self._closed or id in self._early)

    def _close_losers(self) -> None:
        """Once all trials have reported, close those that can no longer be promoted."""
        if len(self._rungs[0].entries) != self._state.max_trials:
            return
        for index, rung in enumerate(self._rungs):
            if rung.outstanding > 0:
                return
            if not rung.settled:
                self._settle(index)

    def _settle(self, index: int) -> None:
        for entry in self._rungs[index].entries:
            if not entry.promoted and entry.request_id not in self._closed:
                self._close(entry.request_id)
        self._rungs[index] = msgspec.structs.replace(self._rungs[index], settled=True)

    # -- the stopping variant (5.5)

    def _stop_or_continue(self, request_id: str, metric: float, index: int) -> None:
        rung, early = self._rungs[index], request_id in self._early
        # At least one, or the first trial of a rung would always stop, and nothing would ever reach the next.
        keep = max(int((len(rung.entries) + 1) / self._state.divisor), 1)
        # Before equal ones, so that a newcomer goes on: here the older ones were judged already and cannot
        # come back.
        position = rung.entries.position(metric, before_equals=True)
        is_promoted = position.rank < keep and not early
        self._rungs[index] = rung.with_entry(position, Entry(metric, request_id, is_promoted))
        if is_promoted:
            self._enter_rung(request_id, index + 1)
        elif not early:
            self._close(request_id)

    def _create_replacement(self) -> None:
        """Unless a trial was sent on, create another one while the limit allows it."""
        if not self._has_continued and len(self._rung_of) - self._invalid < self._state.max_trials:
            self.create()
