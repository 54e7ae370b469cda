"""Trial information that every framework's context provides (Trainer spec, section 3.3)."""

from __future__ import annotations

from typing import Any

from determined._training.settings import Settings
from determined.errors import InternalException


class TrialInformation:
    """Hyperparameters, batch sizes, configuration and ids of a trial, and the request to stop it.

    Example:
        ```python
        width = context.get_hparam("width")
        batch_size = context.get_per_slot_batch_size()   # records on one slot
        ```
    """

    def __init__(self, settings: Settings, steps_completed: int) -> None:
        self._settings = settings
        self._steps_completed = steps_completed
        self._stop_requested = False

    def get_hparams(self) -> dict[str, Any]:
        """Return all hyperparameters of the trial, by name.

        Raises:
            ValueError: If none were given off cluster.

        Example:
            ```python
            layers = self.context.get_hparams()["model"]["layers"]    # nested as in the configuration
            ```
        """
        return self._settings.all_hparams()

    def get_hparam(self, name: str) -> Any:
        """Return one hyperparameter.

        Args:
            name: A key of the configuration's `hyperparameters`.

        Raises:
            ValueError: If there is no hyperparameter of this name.

        Example:
            ```python
            rate = context.get_hparam("learning_rate")
            ```
        """
        return self._settings.hparam(name)

    def get_global_batch_size(self) -> int:
        """Return the number of records in a batch over all slots.

        Raises:
            ValueError: If the hyperparameter `global_batch_size` is missing.

        Example:
            ```python
            rate = 0.001 * context.get_global_batch_size() / 256  # grows with the batch
            ```
        """
        return self._settings.batch_sizes[1]

    def get_per_slot_batch_size(self) -> int:
        """Return the number of records in a batch on one slot: `global_batch_size` divided by the slots.

        Raises:
            ValueError: If the hyperparameter `global_batch_size` is missing.

        Example:
            ```python
            loader = pytorch.DataLoader(dataset, batch_size=context.get_per_slot_batch_size())
            ```
        """
        return self._settings.batch_sizes[0]

    def get_experiment_config(self) -> dict[str, Any]:
        """Return the experiment configuration with defaults filled in.

        Raises:
            ValueError: If none was given off cluster.

        Example:
            ```python
            metric = self.context.get_experiment_config()["searcher"]["metric"]
            ```
        """
        return self._settings.configuration()

    def get_data_config(self) -> dict[str, Any]:
        """Return the `data` section of the configuration; empty if there is none.

        Example:
            ```python
            folder = context.get_data_config()["folder"]  # data: {folder: /datasets/digits}
            ```
        """
        return self._settings.configuration().get("data") or {}

    def get_trial_seed(self) -> int:
        """Return the trial's random seed.

        Raises:
            InternalException: If the script runs off cluster.

        Example:
            ```python
            generator = torch.Generator().manual_seed(context.get_trial_seed())
            ```
        """
        return self._settings.number("trial seed")

    def get_experiment_id(self) -> int:
        """Return the id of the experiment.

        Raises:
            InternalException: If the script runs off cluster.

        Example:
            ```python
            writer.add_text("experiment", str(self.context.get_experiment_id()))
            ```
        """
        return self._settings.number("experiment id")

    def get_trial_id(self) -> int:
        """Return the id of the trial.

        Raises:
            InternalException: If the script runs off cluster.

        Example:
            ```python
            folder = pathlib.Path("/shared/samples") / str(self.context.get_trial_id())
            ```
        """
        return self._settings.number("trial id")

    def get_initial_batch(self) -> int:
        """Return the number of batches already trained when this process started.

        Example:
            ```python
            if self.context.get_initial_batch() > 0:
                print("continuing an earlier run")
            ```
        """
        return self._steps_completed

    def get_stop_requested(self) -> bool:
        """Return whether the script requested to stop.

        Example:
            ```python
            if self.context.get_stop_requested():
                print("this is the last window")
            ```
        """
        return self._stop_requested

    def set_stop_requested(self, stop_requested: bool) -> None:
        """Finish the current window, store a checkpoint, and end the trial permanently.

        Args:
            stop_requested: True to stop; False to revoke an earlier request.

        Raises:
            AssertionError: If the argument is not a bool.

        Example:
            ```python
            if math.isnan(loss.item()):
                self.context.set_stop_requested(True)
            ```
        """
        if not isinstance(stop_requested, bool):
            raise AssertionError(f"set_stop_requested() takes a bool, not {stop_requested!r}")
        self._stop_requested = stop_requested


class TrainingPlace:
    """The current batch and epoch, both counted from 0 over the life of the trial."""

    _epoch_len: int | None = None
    """Number of batches in an epoch; None before training and for endless data."""

    @property
    def _batch_index(self) -> int:
        """Index of the current batch; -1 before the first."""
        raise NotImplementedError

    def current_train_batch(self) -> int:
        """Return the index of the batch that is being trained.

        Raises:
            InternalException: If no batch has been trained yet.

        Example:
            ```python
            if self.context.current_train_batch() % 100 == 0:
                print("loss", loss.item())
            ```
        """
        if self._batch_index < 0:
            raise InternalException("no batch has been trained yet")
        return self._batch_index

    def current_train_epoch(self) -> int:
        """Return the index of the epoch that is being trained.

        Example:
            ```python
            if self.context.current_train_epoch() >= 5:
                unfreeze(self.model)
            ```
        """
        batch = self.current_train_batch()
        return batch // self._epoch_len if self._epoch_len else 0

    def is_epoch_start(self) -> bool:
        """Return whether the current batch is the first of an epoch.

        Example:
            ```python
            if self.context.is_epoch_start():
                self.confusion.zero_()
            ```
        """
        batch = self.current_train_batch()
        return batch % self._epoch_len == 0 if self._epoch_len else batch == 0

    def is_epoch_end(self) -> bool:
        """Return whether the current batch is the last of an epoch.

        Example:
            ```python
            if self.context.is_epoch_end():
                self.teacher.load_state_dict(self.model.state_dict())
            ```
        """
        batch = self.current_train_batch()
        return bool(self._epoch_len) and (batch + 1) % (self._epoch_len or 1) == 0
