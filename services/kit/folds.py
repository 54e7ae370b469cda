"""A fold as a table of functions by kind of event. Its keys say what a service reads of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from det_contracts.envelope import Recorded
from services.kit.rules import Key

S = TypeVar("S")
FoldOne = Callable[[S, Recorded], Iterable[Key]]


class Fold(Generic[S]):
    """Folds an event with the function of its kind."""

    def __init__(self, functions: Mapping[type, FoldOne[S]]) -> None:
        self.functions = functions
        self.kinds = frozenset(functions)
        """The kinds of events that change the state. All others have no effect."""

    def __call__(self, state: S, recorded: Recorded) -> Iterable[Key]:
        """Fold one event; return the keys of the changed records.

        Most functions are generators, which change nothing until all keys are consumed.
        """
        fold = self.functions.get(type(recorded.event))
        return fold(state, recorded) if fold is not None else ()


def of_event(fold: Callable[[S, Any], Iterable[Key]]) -> FoldOne[S]:
    """Make a function that folds an event from one that needs no more of it than the record."""
    return lambda state, recorded: fold(state, recorded.event)


def of_events(functions: Mapping[type, Callable[[S, Any], Iterable[Key]]]) -> dict[type, FoldOne[S]]:
    """The same for a table of functions."""
    return {kind: of_event(fold) for kind, fold in functions.items()}
