"""The base class of search methods, and the state common to all searches."""

from __future__ import annotations

import abc
import enum
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from determined.searcher._operations import Operation

_STATE_FILE = "state.json"
_METHOD_FOLDER = "method_state"


class ExitedReason(enum.Enum):
    """Why a trial ended before it was closed: an error, a user's action, or unusable hyperparameters.

    Example:
        ```python
        def on_trial_exited_early(self, searcher_state, request_id, exited_reason):
            if exited_reason is searcher.ExitedReason.INVALID_HP:
                return []    # other trials go on
            return [searcher.Shutdown(failure=True)]
        ```
    """

    ERRORED = "ERRORED"
    USER_CANCELED = "USER_CANCELED"
    INVALID_HP = "INVALID_HP"


class SearcherState:
    """What a runner knows about its search. Search methods read it.

    Attributes:
        trials_created: Ids of all trials created so far.
        trials_closed: Ids of the trials that have ended.
        failures: Ids of the trials that ended with an error.
        trial_progress: How far each trial has trained, in the unit of `ValidateAfter.length`.
        last_event_id: Id of the last event that was answered.
        experiment_completed: Whether the experiment has completed successfully.
        experiment_failed: Whether it has ended with an error. Both are false if it was canceled or deleted.
        experiment_id: Id of the experiment, once a runner runs it.

    Example:
        ```python
        def progress(self, searcher_state):
            return len(searcher_state.trials_closed) / self.max_trials
        ```
    """

    last_event_id: int | None = None
    experiment_completed: bool = False
    experiment_failed: bool = False
    experiment_id: int | None = None

    def __init__(self) -> None:
        self.failures: set[uuid.UUID] = set()
        self.trial_progress: dict[uuid.UUID, float] = {}
        """Units trained, by trial."""
        self.trials_closed: set[uuid.UUID] = set()
        self.trials_created: set[uuid.UUID] = set()
        self.last_event_id = None
        self.experiment_completed = self.experiment_failed = False
        self.experiment_id = None

    def to_dict(self) -> dict[str, Any]:
        """Return the state as a JSON-serializable dict.

        Example:
            ```python
            path.write_text(json.dumps(state.to_dict()))
            ```
        """
        return {
            # Sorted, so that equal states give equal files.
            "failures": sorted(map(str, self.failures)),
            "trialProgress": {str(id): units for id, units in self.trial_progress.items()},
            "trialsClosed": sorted(map(str, self.trials_closed)),
            "trialsCreated": sorted(map(str, self.trials_created)),
            "lastEventId": self.last_event_id,
            "experimentCompleted": self.experiment_completed,
            "experimentFailed": self.experiment_failed,
            "experimentId": self.experiment_id,
        }

    def from_dict(self, d: dict[str, Any]) -> None:
        """Restore a state.

        Args:
            d: A dict returned by `to_dict()`.

        Example:
            ```python
            state = searcher.SearcherState()
            state.from_dict(json.loads(path.read_text()))
            ```
        """
        self.failures = set(map(uuid.UUID, d["failures"]))
        self.trial_progress = {uuid.UUID(id): units for id, units in d["trialProgress"].items()}
        self.trials_closed = set(map(uuid.UUID, d["trialsClosed"]))
        self.trials_created = set(map(uuid.UUID, d["trialsCreated"]))
        self.last_event_id = d.get("lastEventId")
        self.experiment_completed = d.get("experimentCompleted", False)
        self.experiment_failed = d.get("experimentFailed", False)
        self.experiment_id = d.get("experimentId")


class SearchMethod(abc.ABC):
    """Decides which trials to create and how far to train each.

    Each method returns operations to perform now.

    A method with its own state saves it in `save_method_state()` and restores it in `load_method_state()`, so
    that the search can continue after an interruption. Trials are identified by request ids: UUIDs that the
    method generates for its `Create` operations.

    Example:
        ```python
        class TwoTrials(searcher.SearchMethod):
            def initial_operations(self, searcher_state):
                operations: list[searcher.Operation] = []
                for lr in (0.1, 0.01):
                    id = uuid.uuid4()
                    operations.append(searcher.Create(id, {"lr": lr}))
                    operations.append(searcher.ValidateAfter(id, 100))
                    operations.append(searcher.Close(id))
                return operations

            def on_trial_created(self, searcher_state, request_id):
                return []

            def on_validation_completed(self, searcher_state, request_id, metric, train_length):
                return []

            def on_trial_closed(self, searcher_state, request_id):
                over = len(searcher_state.trials_closed) == 2
                return [searcher.Shutdown()] if over else []

            def on_trial_exited_early(self, searcher_state, request_id, exited_reason):
                return []

            def progress(self, searcher_state):
                return len(searcher_state.trials_closed) / 2
        ```
    """

    @abc.abstractmethod
    def initial_operations(self, searcher_state: SearcherState) -> Sequence[Operation]:
        """Return the first operations: usually `Create` and `ValidateAfter` for the first trials.

        Args:
            searcher_state: What is known of the search.

        Returns:
            Operations, in the order in which they are performed.

        Example:
            ```python
            def initial_operations(self, searcher_state):
                trial = uuid.uuid4()
                return [searcher.Create(trial, {"lr": 0.1}), searcher.ValidateAfter(trial, 4)]
            ```
        """

    @abc.abstractmethod
    def on_trial_created(self, searcher_state: SearcherState, request_id: uuid.UUID) -> Sequence[Operation]:
        """Return the operations to perform after a trial has been created.

        Args:
            searcher_state: The state of the search.
            request_id: Id of the trial.

        Returns:
            Operations, in the order in which they are performed.

        Example:
            ```python
            def on_trial_created(self, searcher_state, request_id):
                return []  # initial_operations() has asked for all that is needed
            ```
        """

    @abc.abstractmethod
    def on_validation_completed(
        self, searcher_state: SearcherState, request_id: uuid.UUID, metric: Any, train_length: int
    ) -> Sequence[Operation]:
        """Return the operations to perform after a trial has reported its searcher metric.

        Args:
            searcher_state: The state of the search.
            request_id: Id of the trial.
            metric: The value that the script reported: usually a number, but any JSON value may be.
            train_length: How far the trial has trained in all, in the unit of `ValidateAfter.length`.

        Returns:
            Operations, in the order in which they are performed.

        Example:
            ```python
            def on_validation_completed(self, searcher_state, request_id, metric, train_length):
                if metric < 0.1 or train_length >= 64:
                    return [searcher.Close(request_id)]
                return [searcher.ValidateAfter(request_id, 2 * train_length)]
            ```
        """

    @abc.abstractmethod
    def on_trial_closed(self, searcher_state: SearcherState, request_id: uuid.UUID) -> Sequence[Operation]:
        """Return the operations to perform after a trial has ended.

        Args:
            searcher_state: The state of the search.
            request_id: Id of the trial.

        Returns:
            Operations, in the order in which they are performed.

        Example:
            ```python
            def on_trial_closed(self, searcher_state, request_id):
                over = len(searcher_state.trials_closed) >= 8
                return [searcher.Shutdown()] if over else []
            ```
        """

    @abc.abstractmethod
    def on_trial_exited_early(
        self, searcher_state: SearcherState, request_id: uuid.UUID, exited_reason: ExitedReason
    ) -> Sequence[Operation]:
        """Return the operations after a trial ended before it was closed. `on_trial_closed` is called next.

        Args:
            searcher_state: The state of the search.
            request_id: Id of the trial.
            exited_reason: Why it ended.

        Returns:
            Operations, in the order in which they are performed.

        Example:
            ```python
            def on_trial_exited_early(self, searcher_state, request_id, exited_reason):
                if exited_reason is searcher.ExitedReason.INVALID_HP:
                    return self.new_trial()  # another try in its place
                return []
            ```
        """

    @abc.abstractmethod
    def progress(self, searcher_state: SearcherState) -> float:
        """Return the progress of the search, from 0 to 1. Called after each trial that has ended.

        Args:
            searcher_state: The state of the search.

        Returns:
            A number from 0 to 1.

        Example:
            ```python
            def progress(self, searcher_state):
                return len(searcher_state.trials_closed) / self.max_trials
            ```
        """

    def save(self, searcher_state: SearcherState, path: Path, *, experiment_id: int) -> None:
        """Write the state of the search and of the method to a directory. Called by runners.

        Args:
            searcher_state: The state of the search.
            path: The directory. It is created if missing.
            experiment_id: Id of the experiment.

        Example:
            ```python
            method.save(runner.state, pathlib.Path("state"), experiment_id=7)
            ```
        """
        path.mkdir(parents=True, exist_ok=True)
        state = searcher_state.to_dict() | {"experimentId": experiment_id}
        # Replaced in one step: a method that is killed while it saves finds the old state or the new one.
        fresh = path / f"{_STATE_FILE}.new"
        fresh.write_text(json.dumps(state))
        fresh.replace(path / _STATE_FILE)
        (path / _METHOD_FOLDER).mkdir(exist_ok=True)
        self.save_method_state(path / _METHOD_FOLDER)

    def load(self, path: Path) -> tuple[SearcherState, int]:
        """Restore what `save()` wrote. Called by runners.

        Args:
            path: The directory.

        Returns:
            The state of the search, and the id of the experiment.

        Example:
            ```python
            runner.state, experiment_id = method.load(pathlib.Path("state"))
            ```
        """
        saved = json.loads((path / _STATE_FILE).read_text())
        state = SearcherState()
        state.from_dict(saved)
        self.load_method_state(path / _METHOD_FOLDER)
        return state, int(saved["experimentId"])

    def save_method_state(self, path: Path) -> None:  # noqa: B027
        """Save the method's own state. Override this for a stateful method.

        Args:
            path: An empty directory, or one that an earlier call has written to.

        Example:
            ```python
            def save_method_state(self, path):
                (path / "best.json").write_text(json.dumps(self.best))
            ```
        """

    def load_method_state(self, path: Path) -> None:  # noqa: B027
        """Restore what `save_method_state()` wrote. Override this for a stateful method.

        Args:
            path: The directory.

        Example:
            ```python
            def load_method_state(self, path):
                self.best = json.loads((path / "best.json").read_text())
            ```
        """
