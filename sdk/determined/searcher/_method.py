"""The base class of search methods, and the state that every search has."""

from __future__ import annotations

import abc
import enum
import json
import uuid
from pathlib import Path
from typing import Any

from determined.searcher._operations import Operation

_STATE_FILE = "state.json"
_METHOD_FOLDER = "method_state"


class ExitedReason(enum.Enum):
    """Why a trial ended before it was closed."""

    ERRORED = "ERRORED"
    USER_CANCELED = "USER_CANCELED"
    INVALID_HP = "INVALID_HP"


class SearcherState:
    """What a runner knows of its search; methods read it."""

    last_event_id: int | None = None
    experiment_completed: bool = False
    experiment_failed: bool = False

    def __init__(self) -> None:
        self.failures: set[uuid.UUID] = set()
        self.trial_progress: dict[uuid.UUID, float] = {}
        """Units trained, by trial."""
        self.trials_closed: set[uuid.UUID] = set()
        self.trials_created: set[uuid.UUID] = set()
        self.last_event_id = None
        self.experiment_completed = self.experiment_failed = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "failures": sorted(map(str, self.failures)),
            "trialProgress": {str(id): units for id, units in self.trial_progress.items()},
            "trialsClosed": sorted(map(str, self.trials_closed)),
            "trialsCreated": sorted(map(str, self.trials_created)),
            "lastEventId": self.last_event_id,
            "experimentCompleted": self.experiment_completed,
            "experimentFailed": self.experiment_failed,
        }

    def from_dict(self, d: dict[str, Any]) -> None:
        """Become what `to_dict` told."""
        self.failures = set(map(uuid.UUID, d["failures"]))
        self.trial_progress = {uuid.UUID(id): units for id, units in d["trialProgress"].items()}
        self.trials_closed = set(map(uuid.UUID, d["trialsClosed"]))
        self.trials_created = set(map(uuid.UUID, d["trialsCreated"]))
        self.last_event_id = d.get("lastEventId")
        self.experiment_completed = d.get("experimentCompleted", False)
        self.experiment_failed = d.get("experimentFailed", False)


class SearchMethod(abc.ABC):
    """Decides which trials exist and how far each trains. Each call returns operations, or none.

    A method with state of its own saves it in `save_method_state` and finds it again in `load_method_state`.
    """

    @abc.abstractmethod
    def initial_operations(self, searcher_state: SearcherState) -> list[Operation]:
        """What is done first."""

    @abc.abstractmethod
    def on_trial_created(self, searcher_state: SearcherState, request_id: uuid.UUID) -> list[Operation]:
        """A trial exists now."""

    @abc.abstractmethod
    def on_validation_completed(
        self, searcher_state: SearcherState, request_id: uuid.UUID, metric: Any, train_length: int
    ) -> list[Operation]:
        """A trial has trained to `train_length` and reported its searcher metric: any JSON value."""

    @abc.abstractmethod
    def on_trial_closed(self, searcher_state: SearcherState, request_id: uuid.UUID) -> list[Operation]:
        """A trial is over."""

    @abc.abstractmethod
    def on_trial_exited_early(
        self, searcher_state: SearcherState, request_id: uuid.UUID, exited_reason: ExitedReason
    ) -> list[Operation]:
        """A trial ended before it was closed; `on_trial_closed` follows."""

    @abc.abstractmethod
    def progress(self, searcher_state: SearcherState) -> float:
        """How far the search is, 0 to 1."""

    def save(self, searcher_state: SearcherState, path: Path, *, experiment_id: int) -> None:
        """Write everything into a folder."""
        path.mkdir(parents=True, exist_ok=True)
        state = searcher_state.to_dict() | {"experimentId": experiment_id}
        fresh = path / f"{_STATE_FILE}.new"
        fresh.write_text(json.dumps(state))
        fresh.replace(path / _STATE_FILE)
        (path / _METHOD_FOLDER).mkdir(exist_ok=True)
        self.save_method_state(path / _METHOD_FOLDER)

    def load(self, path: Path) -> tuple[SearcherState, int]:
        """Read it again; returns the state and the experiment's id."""
        found = json.loads((path / _STATE_FILE).read_text())
        state = SearcherState()
        state.from_dict(found)
        self.load_method_state(path / _METHOD_FOLDER)
        return state, int(found["experimentId"])

    def save_method_state(self, path: Path) -> None:  # noqa: B027
        """Write what the method itself must remember into a folder; nothing unless overridden."""

    def load_method_state(self, path: Path) -> None:  # noqa: B027
        """Read it again."""
