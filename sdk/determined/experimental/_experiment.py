"""An experiment in the client (client spec, section 2)."""

from __future__ import annotations

import sys
import time
from typing import Any

from determined.experimental import _checkpoint, _ranking
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._enums import (
    CheckpointState,
    ExperimentState,
    TrialOrderBy,
    TrialSortBy,
    on_the_wire,
)
from determined.experimental._trial import TrialReference
from determined.transport.pages import read_all
from determined.transport.rest import AnySession, Session, speaking

_ENDED = (
    ExperimentState.COMPLETED,
    ExperimentState.CANCELED,
    ExperimentState.ERROR,
    ExperimentState.DELETED,
)
_WORD_EVERY_S = 60.0


class _Control:
    """Operations on an experiment. Every call returns without waiting for the effect."""

    _id: int
    _session: Session

    def activate(self) -> None:
        """Start the experiment, or resume it after a pause.

        Example:
            ```python
            client.get_experiment(7).activate()
            ```
        """
        self._post("activate")

    def pause(self) -> None:
        """Pause the experiment.

        Its trials store a checkpoint and exit; this returns before they have exited.

        Example:
            ```python
            experiment = client.get_experiment(7)
            experiment.pause()
            experiment.activate()    # later: its trials continue from their checkpoints
            ```
        """
        self._post("pause")

    def cancel(self) -> None:
        """End the experiment after its trials have stored a checkpoint. Returns before it has ended.

        Example:
            ```python
            experiment = client.get_experiment(7)
            experiment.cancel()
            experiment.wait()    # until it has ended
            ```
        """
        self._post("cancel")

    def kill(self) -> None:
        """End the experiment immediately. Returns before it has ended.

        Example:
            ```python
            client.get_experiment(7).kill()
            ```
        """
        self._post("kill")

    def archive(self) -> None:
        """Hide the experiment from the default lists. It must have ended.

        Example:
            ```python
            experiment = client.get_experiment(7)
            experiment.wait()
            experiment.archive()
            ```
        """
        self._post("archive")

    def unarchive(self) -> None:
        """Show the experiment in the default lists again.

        Example:
            ```python
            client.get_experiment(7).unarchive()
            ```
        """
        self._post("unarchive")

    def delete(self) -> None:
        """Delete the experiment with its checkpoints, metrics and logs. It must have ended.

        Returns before everything is deleted.

        Example:
            ```python
            for id in (3, 4, 5):
                client.get_experiment(id).delete()
            ```
        """
        self._session.delete(f"/api/v1/experiments/{self._id}")

    def _post(self, verb: str) -> None:
        self._session.post(f"/api/v1/experiments/{self._id}/{verb}")


class ExperimentReference(_Control):
    """An experiment, as returned by `client.get_experiment()`.

    Holds only the id; other data is read on request.

    Example:
        ```python
        experiment = client.get_experiment(7)
        for checkpoint in experiment.top_n_checkpoints(3):
            print(checkpoint.uuid, checkpoint.training.hparams)
        ```
    """

    def __init__(self, experiment_id: int, session: AnySession) -> None:
        self._id = experiment_id
        self._session = speaking(session)

    @property
    def id(self) -> int:
        """The id of the experiment.

        Example:
            ```python
            experiment = client.create_experiment("config.yaml", model_dir=".")
            print(f"det e describe {experiment.id}")
            ```
        """
        return self._id

    def __repr__(self) -> str:
        return f"Experiment(id={self.id})"

    def wait(self, interval: float = 5.0) -> ExperimentState:
        """Wait until the experiment has ended.

        Args:
            interval: Seconds between two polls of the cluster.

        Returns:
            The final state: `COMPLETED`, `CANCELED`, `ERROR` or `DELETED`.

        Raises:
            ValueError: The experiment is paused.

        Example:
            ```python
            experiment = client.create_experiment("config.yaml", model_dir=".")
            if experiment.wait() is not client.ExperimentState.COMPLETED:
                raise SystemExit("the experiment failed")
            ```
        """
        last_word = time.monotonic()
        while True:
            state = ExperimentState(self._get()["state"])
            if state in _ENDED:
                return state
            # It would wait forever, since nothing but a user activates it.
            if state is ExperimentState.PAUSED:
                raise ValueError(
                    f"Experiment {self.id} is in paused state. Make sure the experiment is active."
                )
            if time.monotonic() - last_word >= _WORD_EVERY_S:
                last_word = time.monotonic()
                # To stderr: the output of a script may be read by a program.
                print(f"Waiting for experiment {self.id} to end; it is {state.name}.", file=sys.stderr)
            time.sleep(interval)

    def await_first_trial(self, interval: float = 0.1) -> TrialReference:
        """Wait until the experiment has a trial that has started.

        Args:
            interval: Seconds between two polls of the cluster.

        Returns:
            The trial that started first.

        Raises:
            RuntimeError: If the experiment ended without a trial.

        Example:
            ```python
            trial = client.create_experiment("config.yaml", model_dir=".").await_first_trial()
            for line in trial.logs(follow=True):
                print(line, end="")
            ```
        """
        params = {"sortBy": TrialSortBy.START_TIME.value, "orderBy": TrialOrderBy.ASC.value, "limit": 1}
        while True:
            # Trials before the state: an experiment may end between the two requests.
            if trials := self._session.get(f"{self._path}/trials", params)["trials"]:
                return TrialReference(int(trials[0]["id"]), self._session)
            state = ExperimentState(self._get()["state"])
            if state in _ENDED:
                raise RuntimeError(f"experiment {self.id} is {state.name} and has no trial")
            time.sleep(interval)

    def get_trials(
        self, sort_by: TrialSortBy = TrialSortBy.ID, order_by: TrialOrderBy = TrialOrderBy.ASCENDING
    ) -> list[TrialReference]:
        """Return all trials of the experiment.

        Args:
            sort_by: What to sort by.
            order_by: Direction of the sort.

        Returns:
            References to the trials, by default by id.

        Example:
            ```python
            for trial in client.get_experiment(7).get_trials():
                print(trial.id, [report.metrics for report in trial.stream_validation_metrics()])
            ```
        """
        params = {
            "sortBy": on_the_wire("sort_by", sort_by),
            "orderBy": on_the_wire("order_by", order_by),
        }
        trials = read_all(self._session, f"{self._path}/trials", "trials", params)
        return [TrialReference(int(trial["id"]), self._session) for trial in trials]

    def top_checkpoint(self, sort_by: str | None = None, smaller_is_better: bool | None = None) -> Checkpoint:
        """Return the best checkpoint of all trials.

        Args:
            sort_by: Name of a validation metric. Default: the searcher metric, in its direction.
            smaller_is_better: Whether smaller values of `sort_by` are better (default: false).

        Returns:
            A checkpoint that is completed.

        Raises:
            AssertionError: The experiment has no completed checkpoint.
            ValueError: `sort_by` is not given and the configuration names no metric.

        Example:
            ```python
            checkpoint = client.get_experiment(7).top_checkpoint()
            path = checkpoint.download()
            ```
        """
        return self.top_n_checkpoints(1, sort_by, smaller_is_better)[0]

    def top_n_checkpoints(
        self, limit: int, sort_by: str | None = None, smaller_is_better: bool | None = None
    ) -> list[Checkpoint]:
        """Return the best completed checkpoint of each of the best trials, best first.

        Args:
            limit: Maximum number of checkpoints.
            sort_by: Name of a validation metric. Default: the searcher metric, in its direction. Checkpoints
                without the metric come last.
            smaller_is_better: Whether smaller values of `sort_by` are better (default: false).

        Returns:
            At least one checkpoint and at most `limit`.

        Raises:
            AssertionError: The experiment has no completed checkpoint.
            ValueError: `sort_by` is not given and the configuration names no metric.

        Example:
            ```python
            experiment = client.get_experiment(7)
            for checkpoint in experiment.top_n_checkpoints(3, sort_by="accuracy", smaller_is_better=False):
                print(checkpoint.uuid)
            ```
        """
        if sort_by is None:
            order = _ranking.of_searcher(self.get_config())
        else:
            order = _ranking.Order(sort_by, bool(smaller_is_better))
        completed = {"states": CheckpointState.COMPLETED.value}
        answer = read_all(self._session, f"{self._path}/checkpoints", "checkpoints", completed)
        checkpoints = [_checkpoint.from_wire(self._session, checkpoint) for checkpoint in answer]
        if not checkpoints:
            raise AssertionError(f"No checkpoint found for experiment {self.id}")
        return _ranking.best_of_each_trial(checkpoints, order)[:limit]

    def get_config(self) -> dict[str, Any]:
        """Return the experiment configuration with defaults filled in.

        Returns:
            The configuration as a nested dict.

        Example:
            ```python
            searcher = client.get_experiment(7).get_config()["searcher"]["name"]
            ```
        """
        config: dict[str, Any] = self._get()["config"]
        return config

    @property
    def _path(self) -> str:
        return f"/api/v1/experiments/{self.id}"

    def _get(self) -> dict[str, Any]:
        experiment: dict[str, Any] = self._session.get(self._path)["experiment"]
        return experiment
