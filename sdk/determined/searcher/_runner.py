"""Runs a search method: reads events, calls the method, posts its operations.

State and operations are saved before they are posted, so a runner that was killed repeats its last post. The
cluster accepts one post per event.
"""

from __future__ import annotations

import abc
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from determined import _arguments
from determined.common.api import errors
from determined.searcher._method import ExitedReason, SearcherState, SearchMethod
from determined.searcher._operations import Operation, Progress
from determined.searcher._submission import create_experiment, open_session
from determined.transport.rest import AnySession, Session, speaking

logger = logging.getLogger("determined.searcher")
PAUSED_POLL_S = 1.0
INACTIVE = -1
_ENDED = ("STATE_COMPLETED", "STATE_CANCELED", "STATE_ERROR", "STATE_DELETED")
_REASONS = {
    "EXITED_REASON_INVALID_HP": ExitedReason.INVALID_HP,
    "EXITED_REASON_USER_CANCELED": ExitedReason.USER_CANCELED,
    "EXITED_REASON_USER_REQUESTED_STOP": ExitedReason.USER_CANCELED,
}
Event = dict[str, Any]
Wire = list[dict[str, Any]]


class SearchRunner(abc.ABC):
    """Runs a search method. Use `LocalSearchRunner` or `RemoteSearchRunner`.

    Attributes:
        search_method: The method.
        state: The state of the search, a `SearcherState`.

    Example:
        ```python
        runner = searcher.LocalSearchRunner(TwoTrials())
        experiment_id = runner.run("config.yaml", model_dir=".")
        print(len(runner.state.trials_created), "trials, failed:", runner.state.failures)
        ```
    """

    def __init__(self, search_method: SearchMethod) -> None:
        """Create a runner with an empty state.

        Args:
            search_method: The search method.
        """
        needed = ("initial_operations", "on_validation_completed", "save", "load")
        _arguments.having("search_method", search_method, needed, "an instance of a SearchMethod")
        self.search_method = search_method
        self.state = SearcherState()

    @abc.abstractmethod
    def save_state(self, experiment_id: int, operations: Wire) -> None:
        """Save the state and the operations that are about to be posted.

        Args:
            experiment_id: Id of the experiment.
            operations: Operations in the form of the REST API.

        Example:
            ```python
            def save_state(self, experiment_id, operations):
                self.search_method.save(self.state, self.folder, experiment_id=experiment_id)
                (self.folder / "operations.json").write_text(json.dumps(operations))
            ```
        """

    def get_events(self, session: AnySession, experiment_id: int) -> list[Event]:
        """Return the unanswered events of the search. Waits up to a minute for one.

        Args:
            session: The connection to the cluster.
            experiment_id: Id of the experiment.

        Example:
            ```python
            for event in runner.get_events(session, experiment_id):
                print(event["id"], sorted(event))
            ```
        """
        path = f"/api/v1/experiments/{experiment_id}/searcher_events"
        events: list[Event] = speaking(session).get(path)["searcherEvents"]
        return events

    def post_operations(
        self,
        session: AnySession,
        experiment_id: int,
        event: Event,
        operations: Sequence[Operation | dict[str, Any]],
    ) -> None:
        """Answer an event. Answering an event a second time has no effect.

        Args:
            session: The connection to the cluster.
            experiment_id: Id of the experiment.
            event: The event, as `get_events()` returned it.
            operations: The operations of the method, as objects or in the form of the REST API.

        Example:
            ```python
            for event in runner.get_events(session, experiment_id):
                runner.post_operations(session, experiment_id, event, [searcher.Shutdown()])
            ```
        """
        _post(speaking(session), f"/api/v1/experiments/{experiment_id}", event, _as_wire(operations))

    def run_experiment(
        self,
        experiment_id: int,
        session: AnySession,
        prior_operations: Sequence[Operation | dict[str, Any]] | None,
        sleep_time: float = PAUSED_POLL_S,
    ) -> None:
        """Run the search until the experiment has ended.

        Args:
            experiment_id: Id of the experiment.
            session: The connection to the cluster.
            prior_operations: Operations of an earlier process that may not have been posted yet, or None
                for a new search.
            sleep_time: Seconds between polls while the experiment is paused.

        Example:
            ```python
            experiment_id, prior = runner.load_state(experiment_id)
            runner.run_experiment(experiment_id, session, prior)    # LocalSearchRunner.run() does both
            ```
        """
        prior = None if prior_operations is None else _as_wire(prior_operations)
        self.state.experiment_id = experiment_id
        state = ""
        while state not in _ENDED:
            for event in self.get_events(session, experiment_id):
                if event["id"] == INACTIVE:
                    state = self._wait_for(event["experimentInactive"]["experimentState"], sleep_time)
                    # The rest of the list, if any, comes again; an inactive experiment takes no operations.
                    break
                operations = self._operations_for(event, prior)
                if event["id"] != self.state.last_event_id:
                    # Saved before it is posted: a process that is killed in between posts the same operations
                    # again, and the cluster takes the answer to an event once.
                    self.state.last_event_id = event["id"]
                    self.save_state(experiment_id, operations)
                prior = None
                self.post_operations(session, experiment_id, event, operations)

    def _search(
        self,
        exp_config: dict[str, Any] | str,
        model_dir: str | None,
        includes: Sequence[str | Path] | None,
        once: uuid.UUID,
        restore: Callable[[], tuple[int, Wire] | None],
    ) -> int:
        """Continue the search that `restore` returns, or start one. Returns the experiment's id.

        With the same `once`, the experiment is created only once, even if an earlier process was killed
        before it saved the result.
        """
        with open_session() as session:
            restored = restore()
            if restored is None:
                id, prior = create_experiment(session, exp_config, model_dir, includes, once), None
                # At once: a process killed before the first event must create no second experiment.
                self.save_state(id, [])
            else:
                id, prior = restored
            self.run_experiment(id, session, prior)
        return id

    def _wait_for(self, experiment_state: str, sleep_time: float) -> str:
        """Note how the experiment has ended, or wait a moment if it has not. Returns its state."""
        self.state.experiment_completed = experiment_state == "STATE_COMPLETED"
        self.state.experiment_failed = experiment_state == "STATE_ERROR"
        if experiment_state not in _ENDED:
            time.sleep(sleep_time)
        return experiment_state

    def _operations_for(self, event: Event, prior: Wire | None) -> Wire:
        if event["id"] == self.state.last_event_id:
            logger.info("Resubmitting operations for event.id=%s", event["id"])
            return prior or []
        return [operation.to_wire() for operation in self._ask(event)]

    def _ask(self, event: Event) -> Sequence[Operation]:
        for name, handle in _HANDLERS.items():
            if name in event:
                return handle(self, event[name])
        # A newer cluster may send such events. They are answered, too: without an answer they come again.
        logger.warning("event %s has a type unknown to this version: %s", event["id"], sorted(event))
        return []

    def _begin(self, _: Event) -> Sequence[Operation]:
        return self.search_method.initial_operations(self.state)

    def _trial_created(self, event: Event) -> Sequence[Operation]:
        id = uuid.UUID(event["requestId"])
        self.state.trials_created.add(id)
        self.state.trial_progress[id] = 0.0
        return self.search_method.on_trial_created(self.state, id)

    def _validated(self, event: Event) -> Sequence[Operation]:
        id, length = uuid.UUID(event["requestId"]), int(event["validateAfterLength"])
        return self.search_method.on_validation_completed(self.state, id, event["metric"], length)

    def _trial_closed(self, event: Event) -> Sequence[Operation]:
        id = uuid.UUID(event["requestId"])
        self.state.trials_closed.add(id)
        return self._with_progress(self.search_method.on_trial_closed(self.state, id))

    def _trial_exited(self, event: Event) -> Sequence[Operation]:
        id = uuid.UUID(event["requestId"])
        reason = _REASONS.get(event.get("exitedReason", ""), ExitedReason.ERRORED)
        if reason is ExitedReason.INVALID_HP:
            # The trial is replaced by another one, so its progress would count twice.
            self.state.trial_progress.pop(id, None)
        elif reason is ExitedReason.ERRORED:
            self.state.failures.add(id)
        return self._with_progress(self.search_method.on_trial_exited_early(self.state, id, reason))

    def _trial_progressed(self, event: Event) -> Sequence[Operation]:
        self.state.trial_progress[uuid.UUID(event["requestId"])] = float(event["partialUnits"])
        return []

    def _with_progress(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        return [*operations, Progress(self.search_method.progress(self.state))]


_HANDLERS: dict[str, Callable[[SearchRunner, Event], Sequence[Operation]]] = {
    "initialOperations": SearchRunner._begin,
    "trialCreated": SearchRunner._trial_created,
    "validationCompleted": SearchRunner._validated,
    "trialClosed": SearchRunner._trial_closed,
    "trialExitedEarly": SearchRunner._trial_exited,
    "trialProgress": SearchRunner._trial_progressed,
}


def _as_wire(operations: Sequence[Operation | dict[str, Any]]) -> Wire:
    return [
        operation.to_wire() if isinstance(operation, Operation) else operation for operation in operations
    ]


def _post(session: Session, path: str, event: Event, operations: Wire) -> None:
    body = {"searcherOperations": operations, "triggeredByEvent": event}
    try:
        session.post(f"{path}/searcher_operations", body)
    except errors.BadRequestException as error:
        # Either it was accepted before and the answer was lost, or the experiment is ending, as the next
        # events show.
        expected = (f"event {event['id']} not found", "experiment in incompatible state")
        if not any(text in str(error) for text in expected):
            raise
