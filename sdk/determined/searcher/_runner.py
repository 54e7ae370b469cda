"""Carries a search method out: reads events, asks the method, posts what it wants.

State and operations are saved before they are posted, so that a runner that was killed repeats its last
post. The cluster takes each event's post once.
"""

from __future__ import annotations

import abc
import json
import logging
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from determined import context as packing
from determined import yamlfile
from determined.common.api import errors
from determined.searcher._method import ExitedReason, SearcherState, SearchMethod
from determined.searcher._operations import Operation, Progress
from determined.transport import identity
from determined.transport.address import master_url
from determined.transport.rest import AnySession, Session, speaking

if TYPE_CHECKING:
    from determined.core import Context

logger = logging.getLogger("determined.searcher")
PAUSED_POLL_S = 1.0
INACTIVE = -1
_ENDED = {"STATE_COMPLETED": True, "STATE_CANCELED": False, "STATE_ERROR": False, "STATE_DELETED": False}
_REASONS = {
    "EXITED_REASON_INVALID_HP": ExitedReason.INVALID_HP,
    "EXITED_REASON_USER_CANCELED": ExitedReason.USER_CANCELED,
    "EXITED_REASON_USER_REQUESTED_STOP": ExitedReason.USER_CANCELED,
}
Event = dict[str, Any]
Wire = list[dict[str, Any]]


class SearchRunner(abc.ABC):
    """Carries a search method out. Use `LocalSearchRunner` or `RemoteSearchRunner`.

    Attributes:
        search_method: The method.
        state: What is known of the search, a `SearcherState`.
    """

    def __init__(self, search_method: SearchMethod) -> None:
        """Begin with an empty state.

        Args:
            search_method: The method.
        """
        self.search_method = search_method
        self.state = SearcherState()

    @abc.abstractmethod
    def save_state(self, experiment_id: int, operations: Wire) -> None:
        """Keep the state and operations that are about to be posted.

        Args:
            experiment_id: Id of the experiment.
            operations: Operations as the REST API takes them.
        """

    def get_events(self, session: AnySession, experiment_id: int) -> list[Event]:
        """Return the events of the search that have not been answered. Waits for one, a minute at most.

        Args:
            session: The connection to the cluster.
            experiment_id: Id of the experiment.
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
        """Answer an event. An answer to an event that was answered before has no effect.

        Args:
            session: The connection to the cluster.
            experiment_id: Id of the experiment.
            event: The event, as `get_events()` returned it.
            operations: What the method wants, as operations or as the REST API takes them.
        """
        _post(speaking(session), f"/api/v1/experiments/{experiment_id}", event, _as_wire(operations))

    def run_experiment(
        self,
        experiment_id: int,
        session: AnySession,
        prior_operations: Sequence[Operation | dict[str, Any]] | None,
        sleep_time: float = PAUSED_POLL_S,
    ) -> None:
        """Carry out the search until the experiment is over.

        Args:
            experiment_id: Id of the experiment.
            session: The connection to the cluster.
            prior_operations: Operations of an earlier process that may not have been posted yet; None for a
                new search.
            sleep_time: Seconds between two questions while the experiment is paused.
        """
        prior = None if prior_operations is None else _as_wire(prior_operations)
        while not (self.state.experiment_completed or self.state.experiment_failed):
            for event in self.get_events(session, experiment_id):
                if event["id"] == INACTIVE:
                    self._wait_for(event["experimentInactive"]["experimentState"], sleep_time)
                    break
                operations = self._operations_for(event, prior)
                if event["id"] != self.state.last_event_id:
                    self.state.last_event_id = event["id"]
                    self.save_state(experiment_id, operations)
                prior = None
                self.post_operations(session, experiment_id, event, operations)

    def _wait_for(self, experiment_state: str, sleep_time: float) -> None:
        if experiment_state in _ENDED:
            self.state.experiment_completed = _ENDED[experiment_state]
            self.state.experiment_failed = not _ENDED[experiment_state]
        else:
            time.sleep(sleep_time)

    def _operations_for(self, event: Event, prior: Wire | None) -> Wire:
        if event["id"] == self.state.last_event_id:
            logger.info("Resubmitting operations for event.id=%s", event["id"])
            return prior or []
        return [operation.to_wire() for operation in self._ask(event)]

    def _ask(self, event: Event) -> Sequence[Operation]:
        for name, told in _TOLD.items():
            if name in event:
                return told(self, event[name])
        logger.warning("event %s is of no kind that this version knows: %s", event["id"], sorted(event))
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
            self.state.trial_progress.pop(id, None)
        elif reason is ExitedReason.ERRORED:
            self.state.failures.add(id)
        return self._with_progress(self.search_method.on_trial_exited_early(self.state, id, reason))

    def _trial_progressed(self, event: Event) -> Sequence[Operation]:
        self.state.trial_progress[uuid.UUID(event["requestId"])] = float(event["partialUnits"])
        return []

    def _with_progress(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        return [*operations, Progress(self.search_method.progress(self.state))]


_TOLD: dict[str, Callable[[SearchRunner, Event], Sequence[Operation]]] = {
    "initialOperations": SearchRunner._begin,
    "trialCreated": SearchRunner._trial_created,
    "validationCompleted": SearchRunner._validated,
    "trialClosed": SearchRunner._trial_closed,
    "trialExitedEarly": SearchRunner._trial_exited,
    "trialProgress": SearchRunner._trial_progressed,
}


def _as_wire(operations: Sequence[Operation | dict[str, Any]]) -> Wire:
    return [one.to_wire() if isinstance(one, Operation) else one for one in operations]


def _post(session: Session, path: str, event: Event, operations: Wire) -> None:
    body = {"searcherOperations": operations, "triggeredByEvent": event}
    try:
        session.post(f"{path}/searcher_operations", body)
    except errors.BadRequestException as error:
        # Taken before, and the answer was lost; or the experiment is ending, as the next events tell.
        known = (f"event {event['id']} not found", "experiment in incompatible state")
        if not any(text in str(error) for text in known):
            raise


class LocalSearchRunner(SearchRunner):
    """Runs a search method in this process. After a stop the same call continues the search.

    Example:
        ```python
        runner = searcher.LocalSearchRunner(TwoTrials(), searcher_dir=Path("my_search"))
        experiment_id = runner.run("config.yaml", model_dir=".")     # with searcher: {name: custom, ...}
        ```
    """

    def __init__(self, search_method: SearchMethod, searcher_dir: Path | None = None) -> None:
        """Choose where to keep the state.

        Args:
            search_method: The method.
            searcher_dir: Folder for the state of the search; by default the working directory. A folder that
                holds a state makes `run()` continue that search.
        """
        super().__init__(search_method)
        self.searcher_dir = Path(searcher_dir) if searcher_dir is not None else Path.cwd()

    def run(
        self,
        exp_config: dict[str, Any] | str,
        model_dir: str | None = None,
        includes: Sequence[str | Path] | None = None,
    ) -> int:
        """Create the experiment, or continue with the one of the folder, and search until it is over.

        Args:
            exp_config: The experiment configuration, with `searcher.name: custom`; a dict, or the path of a
                YAML file.
            model_dir: Directory with the code of the trials.
            includes: Further files and directories to send along.

        Returns:
            The id of the experiment.
        """
        with _session() as session:
            if any(one.exists() for one in self._folders()):
                id, prior = self._loaded()
            else:
                id, prior = _create(session, exp_config, model_dir, includes), None
                self.save_state(id, [])
            self.run_experiment(id, session, prior)
        return id

    def save_state(self, experiment_id: int, operations: Wire) -> None:
        """Write state and operations into the folder. The state before is kept until the new one is whole.

        Args:
            experiment_id: Id of the experiment.
            operations: Operations as the REST API takes them.
        """
        fresh, (folder, old) = self.searcher_dir / "state.new", self._folders()
        shutil.rmtree(fresh, ignore_errors=True)
        self.search_method.save(self.state, fresh, experiment_id=experiment_id)
        (fresh / "operations.json").write_text(json.dumps(operations))
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
        fresh.rename(folder)

    def load_state(self, experiment_id: int) -> Wire:
        """Restore the state from the folder.

        Args:
            experiment_id: Id of the experiment that it must be of.

        Returns:
            The operations that may not have been posted yet, as the REST API takes them.

        Raises:
            FileNotFoundError: The folder holds no state.
            ValueError: It holds that of another experiment.
        """
        found, operations = self._loaded()
        if found != experiment_id:
            raise ValueError(
                f"{self.searcher_dir} holds the search of experiment {found}, not of {experiment_id}"
            )
        return operations

    def _loaded(self) -> tuple[int, Wire]:
        newest = next((one for one in self._folders() if one.exists()), self._folders()[0])
        self.state, id = self.search_method.load(newest)
        return id, json.loads((newest / "operations.json").read_text())

    def _folders(self) -> tuple[Path, Path]:
        """The newest whole state is in the first of these that exists."""
        return self.searcher_dir / "state", self.searcher_dir / "state.old"


class RemoteSearchRunner(SearchRunner):
    """Runs a search method inside a task of the cluster, and keeps its state in the task's checkpoints. A
    task that is paused or restarted continues the search.

    Example:
        ```python
        with det.core.init() as core_context:
            runner = searcher.RemoteSearchRunner(TwoTrials(), context=core_context)
            runner.run("config.yaml", model_dir="model")
        ```
    """

    def __init__(self, search_method: SearchMethod, context: Context) -> None:
        """Keep what is given.

        Args:
            search_method: The method.
            context: The Core API of the task, whose checkpoints hold the state.
        """
        super().__init__(search_method)
        self.context = context

    def run(
        self,
        exp_config: dict[str, Any] | str,
        model_dir: str | None = None,
        includes: Sequence[str | Path] | None = None,
    ) -> int:
        """Create the experiment, or continue with that of the latest checkpoint, and search until it is over.

        Args:
            exp_config: The experiment configuration, with `searcher.name: custom`; a dict, or the path of a
                YAML file.
            model_dir: Directory with the code of the trials.
            includes: Further files and directories to send along.

        Returns:
            The id of the experiment.

        Raises:
            RuntimeError: This is no task of a cluster.
        """
        from determined import get_cluster_info

        info = get_cluster_info()
        if info is None:
            raise RuntimeError("RemoteSearchRunner runs inside a task; use LocalSearchRunner elsewhere")
        with _session() as session:
            if info.latest_checkpoint is not None:
                id, prior = self.load_state(info.latest_checkpoint)
            else:
                id, prior = _create(session, exp_config, model_dir, includes), None
                self.save_state(id, [])
            self.run_experiment(id, session, prior)
        return id

    def load_state(self, storage_id: str) -> tuple[int, Wire]:
        """Restore the state from a checkpoint.

        Args:
            storage_id: Id of the checkpoint.

        Returns:
            The id of the experiment, and the operations that may not have been posted yet, as the REST API
            takes them.
        """
        with self.context.checkpoint.restore_path(storage_id) as path:
            self.state, id = self.search_method.load(path)
            return id, json.loads((path / "operations.json").read_text())

    def save_state(self, experiment_id: int, operations: Wire) -> None:
        """Store state and operations as a checkpoint of the task.

        Args:
            experiment_id: Id of the experiment.
            operations: Operations as the REST API takes them.
        """
        steps = self.state.last_event_id or 0
        with self.context.checkpoint.store_path({"steps_completed": steps}) as (path, _):
            self.search_method.save(self.state, path, experiment_id=experiment_id)
            (path / "operations.json").write_text(json.dumps(operations))


@contextmanager
def _session() -> Iterator[Session]:
    with Session(master_url(None)) as session:
        identity.sign_in(session)
        yield session


def _create(
    session: Session,
    exp_config: dict[str, Any] | str,
    model_dir: str | None,
    includes: Sequence[str | Path] | None,
) -> int:
    config = yamlfile.read(Path(exp_config)) if isinstance(exp_config, str) else yamlfile.dump(exp_config)
    files = (
        packing.pack(Path(model_dir), [Path(one) for one in includes or ()]) if model_dir is not None else []
    )
    body = {"config": config, "modelDefinition": files, "activate": True}
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    id = int(session.post("/api/v1/experiments", body, headers=headers)["experiment"]["id"])
    logger.info("Created experiment %s", id)
    return id
