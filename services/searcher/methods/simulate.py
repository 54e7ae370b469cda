"""Simulates a whole search without training, for previews and tests (searchers spec, section 10)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from services.searcher.methods.protocol import (
    Close,
    Create,
    Event,
    MethodError,
    Operation,
    Shutdown,
    TrialClosed,
    TrialCreated,
    ValidateAfter,
    ValidationCompleted,
)
from services.searcher.methods.rng import Rng
from services.searcher.methods.search import Search, start, step

MAX_TRIALS = 100_000

Lengths = tuple[int, ...]
"""The lengths that one trial was asked to train to, in order; absolute, in the unit of `max_length`."""
Metric = Callable[[int, int, Rng], Any]
"""Returns a trial's metric, given its number in order of creation, a length, and a generator."""


class Simulation(msgspec.Struct, frozen=True):
    """A search that was simulated to its end."""

    trials: dict[str, Lengths]
    """By request id, in order of creation."""
    shutdown: Shutdown
    search: Search


def random_metric(number: int, length: int, rng: Rng) -> float:
    """A meaningless metric: uniform in [0, 1)."""
    return rng.unit()


def simulate(
    searcher: Mapping[str, Any],
    hyperparameters: Mapping[str, Any],
    seed: int,
    *,
    metric: Metric = random_metric,
    on_step: Callable[[Search], None] | None = None,
    max_trials: int = MAX_TRIALS,
    version: int | None = None,
) -> Simulation:
    """Simulate a search whose trials take turns in random order.

    `on_step` is called with each state, including the first. `version` is that of the method; the default is
    the newest. Equal arguments give equal simulations. Raises `MethodError` if the search cannot start,
    creates more than `max_trials`, ends with work left, or stops asking before its end.
    """
    search, operations = start(searcher, hyperparameters, seed, version)
    pending = _PendingOperations(Rng.seeded(seed), metric, max_trials)
    while True:
        if on_step is not None:
            on_step(search)
        pending.add(operations)
        if pending.shutdown is not None:
            return Simulation(pending.lengths, pending.shutdown, search)
        search, operations = step(search, pending.next_event())


def breakdown(simulation: Simulation) -> dict[Lengths, int]:
    """How many trials were asked for the same lengths, most frequent first."""
    return dict(Counter(simulation.trials.values()).most_common())


class _PendingOperations:
    """Pending operations: in order for each trial, random between trials."""

    def __init__(self, rng: Rng, metric: Metric, max_trials: int) -> None:
        self.lengths: dict[str, Lengths] = {}
        self.shutdown: Shutdown | None = None
        self._numbers: dict[str, int] = {}
        self._queues: dict[str, deque[Operation]] = {}
        self._trials_with_operations: list[str] = []
        self._rng = rng
        self._metric = metric
        self._max_trials = max_trials

    def add(self, operations: tuple[Operation, ...]) -> None:
        for operation in operations:
            match operation:
                case Create() | ValidateAfter() | Close():
                    self._enqueue(operation.request_id, operation)
                case Shutdown():
                    self.shutdown = operation
                case _:
                    raise MethodError(f"{operation!r} is not a search operation")
        if self.shutdown is not None and self._trials_with_operations:
            raise MethodError(
                f"the search ended while {len(self._trials_with_operations)} trials had operations left"
            )

    def _enqueue(self, id: str, operation: Operation) -> None:
        if isinstance(operation, Create):
            self._numbers[id] = len(self.lengths)
            self.lengths[id] = ()
            if len(self.lengths) > self._max_trials:
                raise MethodError(
                    f"the search creates more than {self._max_trials} trials: too many to simulate"
                )
        if id not in self._queues:
            self._queues[id] = deque()
            self._trials_with_operations.append(id)
        self._queues[id].append(operation)

    def next_event(self) -> Event:
        if not self._trials_with_operations:
            raise MethodError("the search asks for nothing more, yet it did not end")
        index = self._rng.below(len(self._trials_with_operations))
        id = self._trials_with_operations[index]
        operation = self._queues[id].popleft()
        if not self._queues[id]:
            del self._queues[id]
            # The last one takes its place, so that leaving costs the same however many there are. The order
            # is random anyway.
            self._trials_with_operations[index] = self._trials_with_operations[-1]
            self._trials_with_operations.pop()
        match operation:
            case Create(hparams=hparams):
                return TrialCreated(id, hparams)
            case ValidateAfter(length=length):
                self.lengths[id] += (length,)
                return ValidationCompleted(id, self._metric(self._numbers[id], length, self._rng), length)
            case _:
                return TrialClosed(id)
