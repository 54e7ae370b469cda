"""The events and operations of search methods (searchers spec, section 1).

A method is a pure state machine: `(state, event) -> (state', operations)`. Everything it uses is in its
state, except for a random generator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import msgspec

from services.searcher.methods.rng import Rng
from services.searcher.methods.table import Table

WORST_METRIC = 1.7976931348623157e308
"""Metric of a trial without one: the largest finite double, since JSON has no infinities (5.2)."""


MAX_TRIALS_AT_ONCE = 100_000


class MethodError(Exception):
    """The method cannot continue: its configuration or a metric is invalid. The text says what and why."""


def check_trial_count(count: int) -> None:
    """Raise `MethodError` if a search would create more trials in one step than a service can hold."""
    if count > MAX_TRIALS_AT_ONCE:
        raise MethodError(
            f"the search would start {count} trials at once: "
            f"set max_concurrent_trials to a number from 1 to {MAX_TRIALS_AT_ONCE}"
        )


class Create(msgspec.Struct, frozen=True, tag="create"):
    """Create a trial."""

    request_id: str
    seed: int
    """0 to 2^31 - 1."""
    hparams: dict[str, Any]
    parent: str | None = None
    """Request id of the trial whose latest checkpoint this one starts from."""


class ValidateAfter(msgspec.Struct, frozen=True, tag="validate_after", gc=False):
    """Train until `length` in total, then report the searcher metric."""

    request_id: str
    length: int


class Close(msgspec.Struct, frozen=True, tag="close", gc=False):
    """No further work for this trial."""

    request_id: str


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    """The search is over."""

    cancel: bool
    failure: bool


class Proposal(NamedTuple):
    """Hyperparameters for a trial that is about to be announced, and their origin."""

    hparams: dict[str, Any]
    reason: str


Operation = Create | ValidateAfter | Close | Shutdown


class TrialCreated(msgspec.Struct, frozen=True, tag="trial_created"):
    """The trial exists now."""

    request_id: str
    hparams: dict[str, Any] = {}
    """As announced in the log. These count, even if a replay of the method would propose others."""


class ValidationCompleted(msgspec.Struct, frozen=True, tag="validation_completed"):
    """The trial completed an operation. `metric` is a number, or text if it is not finite (section 7)."""

    request_id: str
    metric: Any
    length: int


class TrialClosed(msgspec.Struct, frozen=True, tag="trial_closed", gc=False):
    """The trial reached a terminal state."""

    request_id: str


class TrialExitedEarly(msgspec.Struct, frozen=True, tag="trial_exited_early"):
    """The trial ended before it was closed; `TrialClosed` follows."""

    request_id: str
    reason: str
    """ERRORED, USER_REQUESTED_STOP, USER_CANCELED, INVALID_HP or INIT_INVALID_HP."""


class TrialProgress(msgspec.Struct, frozen=True, tag="trial_progress"):
    """Total units trained so far."""

    request_id: str
    units: float


Event = TrialCreated | ValidationCompleted | TrialClosed | TrialExitedEarly | TrialProgress
INVALID_HP_REASONS = ("INVALID_HP", "INIT_INVALID_HP")

M = TypeVar("M", bound="Method")


class Method(Protocol):
    """One search method.

    Each call returns the next state and the requested operations; `self` is not changed.
    """

    compares_trials: ClassVar[bool]
    """Whether the metric decides what is trained. Otherwise it may be any JSON value."""

    def initial(self: M, rng: Rng) -> tuple[M, list[Operation]]:
        """Called once, at the start of the experiment."""

    def trial_created(self: M, request_id: str) -> tuple[M, list[Operation]]:
        """The trial was announced."""

    def validation_completed(self: M, request_id: str, metric: Any, rng: Rng) -> tuple[M, list[Operation]]:
        """An operation was completed."""

    def exited_early(self: M, request_id: str, reason: str, rng: Rng) -> tuple[M, list[Operation]]:
        """The trial gave up or was stopped."""

    def trial_closed(self: M, request_id: str, rng: Rng) -> tuple[M, list[Operation]]:
        """The trial is over."""

    def progress(self, units: Table[float], finished: int) -> float:
        """Progress, 0 to 1, from the units trained by open trials and the number of valid ended trials."""


class SearchSettings(NamedTuple):
    """What a method is created from."""

    searcher: Mapping[str, Any]
    """The section of the completed configuration."""
    space: dict[str, Any]
    """The hyperparameters."""
    smaller_is_better: bool
    version: int
    """That of the method, with which this search began."""

    @property
    def max_length(self) -> int:
        """The number of `max_length`, with or without a unit."""
        value = self.searcher["max_length"]
        if isinstance(value, Mapping):
            value = next(count for count in value.values() if count is not None)
        length = int(value)
        if length < 1:
            raise MethodError(f"max_length must be at least 1, not {length}")
        return length


def _always_available() -> str:
    return ""


class Declaration(NamedTuple):
    """What the file of a method says about it, as `METHOD`. The file is named as the method is."""

    state: type[Method] | UnionType
    """The class of its state, which has a tag of its own; `Older | Newer` if versions have different ones."""
    create: Callable[[SearchSettings], Method]
    version: int = 1
    """The newest version of its decisions. Searches that began with an older version keep it."""
    unavailable_reason: Callable[[], str] = _always_available
    """Why this installation cannot run a new search; "" if it can."""
