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

MOST_TRIALS = 100_000

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
    watch: Callable[[Search], None] | None = None,
    most_trials: int = MOST_TRIALS,
    version: int | None = None,
) -> Simulation:
    """Simulate a search whose trials take turns in random order.

    `watch` is called with each state, including the first. `version` is that of the method; the default is
    the newest. Equal arguments give equal simulations. Raises `MethodError` if the search cannot start,
    creates more than `most_trials`, ends with work left, or stops asking before its end.
    """
    search, operations = start(searcher, hyperparameters, seed, version)
    table = _Table(Rng.seeded(seed), metric, most_trials)
    while True:
        if watch is not None:
            watch(search)
        table.take(operations)
        if table.shutdown is not None:
            return Simulation(table.lengths, table.shutdown, search)
        search, operations = step(search, table.next_event())


def breakdown(simulation: Simulation) -> dict[Lengths, int]:
    """How many trials were asked for the same lengths, most frequent first."""
    return dict(Counter(simulation.trials.values()).most_common())


class _Table:
    """Pending operations: in order for each trial, random between trials."""

    def __init__(self, rng: Rng, metric: Metric, most_trials: int) -> None:
        self.lengths: dict[str, Lengths] = {}
        self.shutdown: Shutdown | None = None
        self._numbers: dict[str, int] = {}
        self._waiting: dict[str, deque[Operation]] = {}
        self._turns: list[str] = []
        self._rng = rng
        self._metric = metric
        self._most_trials = most_trials

    def take(self, operations: tuple[Operation, ...]) -> None:
        for operation in operations:
            match operation:
                case Create() | ValidateAfter() | Close():
                    self._wait(operation.request_id, operation)
                case Shutdown():
                    self.shutdown = operation
                case _:
                    raise MethodError(f"{operation!r} is not a search operation")
        if self.shutdown is not None and self._turns:
            raise MethodError(f"the search ended while {len(self._turns)} trials had operations left")

    def _wait(self, id: str, operation: Operation) -> None:
        if isinstance(operation, Create):
            self._numbers[id] = len(self.lengths)
            self.lengths[id] = ()
            if len(self.lengths) > self._most_trials:
                raise MethodError(
                    f"the search creates more than {self._most_trials} trials: too many to simulate"
                )
        if id not in self._waiting:
            self._waiting[id] = deque()
            self._turns.append(id)
        self._waiting[id].append(operation)

    def next_event(self) -> Event:
        if not self._turns:
            raise MethodError("the search asks for nothing more, yet it did not end")
        place = self._rng.below(len(self._turns))
        id = self._turns[place]
        operation = self._waiting[id].popleft()
        if not self._waiting[id]:
            del self._waiting[id]
            self._turns[place] = self._turns[-1]
            self._turns.pop()
        match operation:
            case Create(hparams=hparams):
                return TrialCreated(id, hparams)
            case ValidateAfter(length=length):
                self.lengths[id] += (length,)
                return ValidationCompleted(id, self._metric(self._numbers[id], length, self._rng), length)
            case _:
                return TrialClosed(id)
