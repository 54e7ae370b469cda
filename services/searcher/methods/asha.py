"""Asynchronous successive halving, in its promoting and its stopping form (searchers spec, section 5).

After "A System for Massively Parallel Hyperparameter Tuning" (Li et al., 2020). Trials climb
rungs of growing length; of each rung only the best `1 / divisor` go on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import msgspec

from services.searcher.methods.protocol import INVALID, WORST, Close, Operation, ValidateAfter
from services.searcher.methods.rng import Rng
from services.searcher.methods.sampling import create


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A trial's result in a rung; smaller metrics are better here, whatever the user's direction."""

    metric: float
    request_id: str
    promoted: bool = False


class Rung(msgspec.Struct, frozen=True):
    """One length, and what trials reported at it."""

    length: int
    entries: tuple[Entry, ...] = ()
    outstanding: int = 0
    """Trials on their way to a result in this rung."""


class AshaSearch(msgspec.Struct, frozen=True, tag="async_halving"):
    """One halving bracket."""

    space: dict[str, Any]
    max_trials: int
    divisor: float
    max_concurrent: int
    stop_once: bool
    smaller_is_better: bool
    rungs: tuple[Rung, ...]
    rung_of: dict[str, int] = {}
    """Every trial ever placed in a rung, and the highest rung that it was placed in."""
    early: dict[str, bool] = {}
    """Trials that exited early."""
    closed: dict[str, bool] = {}
    """Trials that were told to close."""
    completed: int = 0
    invalid: int = 0

    @classmethod
    def bracket(
        cls,
        space: dict[str, Any],
        *,
        num_rungs: int,
        max_length: int,
        max_trials: int,
        divisor: float,
        max_concurrent: int,
        stop_once: bool,
        smaller_is_better: bool,
    ) -> AshaSearch:
        """A bracket before its start; the top rung has `max_length`."""
        rungs = tuple(Rung(length) for length in rung_lengths(num_rungs, max_length, divisor))
        return cls(space, max_trials, float(divisor), max_concurrent, stop_once, smaller_is_better, rungs)

    def initial(self, rng: Rng) -> tuple[AshaSearch, list[Operation]]:
        work = Climb(self, rng)
        if self.max_concurrent > 0:
            count = min(self.max_concurrent, self.max_trials)
        else:
            count = max(1, min(int(self.divisor ** (len(self.rungs) - 1)), self.max_trials))
        for _ in range(count):
            work.create()
        return work.done()

    def trial_created(self, request_id: str) -> tuple[AshaSearch, list[Operation]]:
        rung = self.rungs[0]
        first = msgspec.structs.replace(rung, outstanding=rung.outstanding + 1)
        return msgspec.structs.replace(self, rungs=(first, *self.rungs[1:])), []

    def validation_completed(
        self, request_id: str, metric: Any, rng: Rng
    ) -> tuple[AshaSearch, list[Operation]]:
        work = Climb(self, rng)
        work.report(request_id, metric if self.smaller_is_better else -metric)
        return work.done()

    def exited_early(self, request_id: str, reason: str, rng: Rng) -> tuple[AshaSearch, list[Operation]]:
        work = Climb(self, rng)
        if reason in INVALID:
            work.withdraw(request_id)
        else:
            work.give_up(request_id)
        return work.done()

    def trial_closed(self, request_id: str, rng: Rng) -> tuple[AshaSearch, list[Operation]]:
        return msgspec.structs.replace(self, completed=self.completed + 1), []

    def progress(self, units: dict[str, float], closed: frozenset[str]) -> float:
        reported = len(self.rungs[0].entries)
        progress = reported / (1.2 * self.max_trials)
        if reported == self.max_trials:
            progress = max(progress, (self.completed - self.invalid) / self.max_trials)
        return min(progress, 1.0)


def rung_lengths(num_rungs: int, max_length: int, divisor: float) -> list[int]:
    """Absolute lengths, ascending; neighbours may be equal when `max_length` is small."""
    return [max(int(max_length / divisor ** (num_rungs - 1 - i)), 1) for i in range(num_rungs)]


class Climb:
    """One step of a bracket: a working copy that becomes the next state."""

    def __init__(self, state: AshaSearch, rng: Rng) -> None:
        self._state = state
        self._rng = rng
        self._rungs = list(state.rungs)
        self._rung_of = state.rung_of
        self._early = state.early
        self._closed = state.closed
        self._invalid = state.invalid
        self._operations: list[Operation] = []

    def done(self) -> tuple[AshaSearch, list[Operation]]:
        """The next state, and what it asks for."""
        state = msgspec.structs.replace(
            self._state,
            rungs=tuple(self._rungs),
            rung_of=self._rung_of,
            early=self._early,
            closed=self._closed,
            invalid=self._invalid,
        )
        return state, self._operations

    def create(self) -> None:
        """A new trial, in the lowest rung."""
        made = create(self._state.space, self._rng)
        self._rung_of = self._rung_of | {made.request_id: 0}
        self._operations += [made, ValidateAfter(made.request_id, self._rungs[0].length)]

    def report(self, request_id: str, metric: float) -> None:
        """A result of a trial in its present rung."""
        index = self._rung_of[request_id]
        self._change(index, outstanding=self._rungs[index].outstanding - 1)
        if self._state.stop_once:
            self._report_or_stop(request_id, metric, index)
        else:
            self._report_and_promote(request_id, metric, index)

    def give_up(self, request_id: str) -> None:
        """The trial failed or was stopped: it counts as the worst."""
        self._early = self._early | {request_id: True}
        self._closed = self._closed | {request_id: True}
        self.report(request_id, WORST)

    def withdraw(self, request_id: str) -> None:
        """The trial's hyperparameters are invalid: as if it had never been, and another takes its place."""
        self._early = self._early | {request_id: True}
        self._close(request_id)
        self._invalid += 1
        current = self._rung_of[request_id]
        for index in range(current + 1):
            kept = tuple(e for e in self._rungs[index].entries if e.request_id != request_id)
            if len(kept) != len(self._rungs[index].entries):
                self._change(index, entries=kept)
        if not self._state.stop_once:
            self._change(current, outstanding=self._rungs[current].outstanding - 1)
        self.create()

    def _change(self, index: int, **changes: Any) -> None:
        self._rungs[index] = msgspec.structs.replace(self._rungs[index], **changes)

    def _insert(self, index: int, place: int, entry: Entry) -> None:
        entries = self._rungs[index].entries
        self._change(index, entries=(*entries[:place], entry, *entries[place:]))

    def _close(self, request_id: str) -> None:
        self._closed = self._closed | {request_id: True}
        self._operations.append(Close(request_id))

    def _is_top(self, index: int) -> bool:
        return index == len(self._rungs) - 1

    def _finish(self, request_id: str, metric: float, index: int) -> None:
        self._insert(index, len(self._rungs[index].entries), Entry(metric, request_id))
        if request_id not in self._early:
            self._close(request_id)

    # -- the promoting form (5.4)

    def _report_and_promote(self, request_id: str, metric: float, index: int) -> None:
        if self._is_top(index):
            self._finish(request_id, metric, index)
        else:
            promoted = self._enter(request_id, metric, index)
            if promoted is not None:
                self._rung_of = self._rung_of | {promoted: index + 1}
                self._change(index + 1, outstanding=self._rungs[index + 1].outstanding + 1)
                if promoted in self._early:
                    # It can not train on: in the next rung it has the worst result at once.
                    self.report(promoted, WORST)
                    return
                self._operations.append(ValidateAfter(promoted, self._rungs[index + 1].length))
        self._fill_up()
        self._close_losers()

    def _enter(self, request_id: str, metric: float, index: int) -> str | None:
        """Enter a result in a rung; returns the trial that may climb on for it, if any."""
        entries = self._rungs[index].entries
        old = int(len(entries) / self._state.divisor)
        new = int((len(entries) + 1) / self._state.divisor)
        place = bisect_right(entries, metric, key=lambda e: e.metric)
        if place < new:
            self._insert(index, place, Entry(metric, request_id, True))
            return request_id
        self._insert(index, place, Entry(metric, request_id))
        if new == old:
            return None
        candidate = self._rungs[index].entries[old]
        if candidate.promoted:
            return None
        climbing = msgspec.structs.replace(candidate, promoted=True)
        entries = self._rungs[index].entries
        self._change(index, entries=(*entries[:old], climbing, *entries[old + 1 :]))
        return candidate.request_id

    def _close_losers(self) -> None:
        """Once all trials have reported, close those that can not be promoted any more."""
        if len(self._rungs[0].entries) != self._state.max_trials:
            return
        for rung in self._rungs:
            if rung.outstanding > 0:
                return
            for entry in rung.entries:
                id = entry.request_id
                if not entry.promoted and id not in self._closed and id not in self._early:
                    self._close(id)

    # -- the stopping form (5.5)

    def _report_or_stop(self, request_id: str, metric: float, index: int) -> None:
        if self._is_top(index):
            self._finish(request_id, metric, index)
        else:
            entries = self._rungs[index].entries
            keep = max(int((len(entries) + 1) / self._state.divisor), 1)
            place = bisect_left(entries, metric, key=lambda e: e.metric)
            early = request_id in self._early
            climbs = place < keep and not early
            self._insert(index, place, Entry(metric, request_id, climbs))
            if climbs:
                self._rung_of = self._rung_of | {request_id: index + 1}
                self._change(index + 1, outstanding=self._rungs[index + 1].outstanding + 1)
                self._operations.append(ValidateAfter(request_id, self._rungs[index + 1].length))
            elif not early:
                self._close(request_id)
        self._fill_up()

    def _fill_up(self) -> None:
        """Unless a trial was sent on, make another while there may be more."""
        sent = any(isinstance(operation, ValidateAfter) for operation in self._operations)
        if not sent and len(self._rung_of) - self._invalid < self._state.max_trials:
            self.create()
