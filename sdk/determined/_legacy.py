"""Base classes of the 0.25 trainers, which scripts use in annotations and subclass."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from determined import core

NEVER: dict[str, int] = {}


class ExperimentConfig(dict[str, Any]):
    """An experiment configuration with accessors.

    They raise KeyError for missing fields without a default.
    """

    def average_training_metrics_enabled(self) -> bool:
        """Whether training metrics are averaged over slots."""
        return bool(self["optimizations"]["average_training_metrics"])

    def debug_enabled(self) -> bool:
        """`debug`."""
        return bool(self.get("debug", False))

    def experiment_seed(self) -> int:
        """Return the seed that all randomness of the search is derived from."""
        return int((self.get("reproducibility") or {}).get("experiment_seed", 0))

    def get_checkpoint_storage(self) -> dict[str, Any]:
        """`checkpoint_storage`."""
        return dict(self.get("checkpoint_storage") or {})

    def get_entrypoint(self) -> Any:
        """`entrypoint`, as a string or a list of words."""
        return self["entrypoint"]

    def get_min_checkpoint_period(self) -> dict[str, int]:
        """`min_checkpoint_period`, as a unit and a number; empty for never."""
        return dict(self.get("min_checkpoint_period") or NEVER)

    def get_min_validation_period(self) -> dict[str, int]:
        """`min_validation_period`, as a unit and a number; empty for never."""
        return dict(self.get("min_validation_period") or NEVER)

    def get_optimizations_config(self) -> dict[str, Any]:
        """`optimizations`."""
        return dict(self.get("optimizations") or {})

    def get_records_per_epoch(self) -> int | None:
        """`records_per_epoch`."""
        records = self.get("records_per_epoch")
        return None if records is None else int(records)

    def get_searcher_metric(self) -> str:
        """Return the name of the searcher metric. Raises AssertionError if there is none."""
        metric = (self.get("searcher") or {}).get("metric")
        if not isinstance(metric, str):
            raise AssertionError(f"searcher.metric ({metric!r}) is not a string")
        return metric

    def native_parallel_enabled(self) -> bool:
        """`resources.native_parallel`."""
        return bool(self["resources"]["native_parallel"])

    def profiling_enabled(self) -> bool:
        """`profiling.enabled`."""
        return bool(self._profiling.get("enabled", False))

    def profiling_interval(self) -> tuple[int, int | None]:
        """Return the first and last batch to profile, or (0, 0) if profiling is disabled."""
        if not self.profiling_enabled():
            return 0, 0
        return int(self._profiling.get("begin_on_batch", 0)), self._profiling.get("end_after_batch")

    def profiling_sync_timings(self) -> bool:
        """`profiling.sync_timings`."""
        return bool(self._profiling.get("sync_timings", True))

    def scheduling_unit(self) -> int:
        """Return the number of batches between two checks with the cluster."""
        return int(self.get("scheduling_unit", 100))

    def slots_per_trial(self) -> int:
        """`resources.slots_per_trial`."""
        return int(self["resources"]["slots_per_trial"])

    @property
    def _profiling(self) -> dict[str, Any]:
        return self.get("profiling") or {}


class EnvContext:
    """The environment of a trial, field by field."""

    def __init__(
        self,
        master_url: str,
        master_cert_file: str | None,
        master_cert_name: str | None,
        experiment_config: dict[str, Any],
        hparams: dict[str, Any],
        latest_checkpoint: str | None,
        steps_completed: int,
        use_gpu: bool,
        container_gpus: list[str],
        slot_ids: list[int],
        debug: bool,
        det_trial_id: str,
        det_experiment_id: str,
        det_agent_id: str,
        det_cluster_id: str,
        trial_seed: int,
        trial_run_id: int,
        allocation_id: str,
        managed_training: bool,
        test_mode: bool,
        on_cluster: bool,
    ) -> None:
        self.master_url, self.master_cert_file, self.master_cert_name = (
            master_url,
            master_cert_file,
            master_cert_name,
        )
        self.experiment_config = ExperimentConfig(experiment_config)
        self.hparams, self.latest_checkpoint, self.steps_completed = (
            hparams,
            latest_checkpoint,
            steps_completed,
        )
        self.use_gpu, self.container_gpus, self.slot_ids, self.debug = (
            use_gpu,
            container_gpus,
            slot_ids,
            debug,
        )
        self.det_trial_id, self.det_experiment_id = det_trial_id, det_experiment_id
        self.det_agent_id, self.det_cluster_id = det_agent_id, det_cluster_id
        self.trial_seed, self.trial_run_id, self.allocation_id = trial_seed, trial_run_id, allocation_id
        self.managed_training, self.test_mode, self.on_cluster = managed_training, test_mode, on_cluster


class TrialContext:
    """Gives a trial access to its `EnvContext` while it trains. Base class for custom contexts."""

    def __init__(self, core_context: core.Context, env: EnvContext) -> None:
        self._core, self.env = core_context, env
        self.distributed = core_context.distributed
        self._stop_requested = False

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> TrialContext:
        """Create an off-cluster context.

        Takes constant hyperparameters and samples one value of the others.

        Args:
            config: The experiment configuration.

        Returns:
            A context of one process without a cluster.

        Example:
            ```python
            context = MyContext.from_config({"hyperparameters": {"global_batch_size": 32}})
            ```
        """
        from determined import core
        from determined.experimental import _test_run

        whole = _test_run.whole(config)
        return cls(core._dummy_init(), _test_run.environment(whole))

    def get_experiment_config(self) -> dict[str, Any]:
        """Return the experiment configuration.

        Example:
            ```python
            searched = self.context.get_experiment_config()["searcher"]["metric"]
            ```
        """
        return self.env.experiment_config

    def get_data_config(self) -> dict[str, Any]:
        """Return the `data` field of the configuration.

        Example:
            ```python
            folder = self.context.get_data_config()["folder"]    # data: {folder: /data/digits}
            ```
        """
        return self.env.experiment_config.get("data") or {}

    def get_experiment_id(self) -> int:
        """Return the experiment id.

        Returns:
            The experiment's number in the cluster.

        Example:
            ```python
            name = f"experiment-{self.context.get_experiment_id()}"
            ```
        """
        return int(self.env.det_experiment_id)

    def get_trial_id(self) -> int:
        """Return the trial id.

        Returns:
            The trial's number in the cluster.

        Example:
            ```python
            cache = pathlib.Path(f"/tmp/trial-{self.context.get_trial_id()}")
            ```
        """
        return int(self.env.det_trial_id)

    def get_trial_seed(self) -> int:
        """Return the trial's random seed.

        Returns:
            The same number in every run of the trial and on every rank.

        Example:
            ```python
            rng = np.random.default_rng(self.context.get_trial_seed())
            ```
        """
        return self.env.trial_seed

    def get_hparams(self) -> dict[str, Any]:
        """Return all hyperparameters.

        Returns:
            The values of this trial, by name. Nested hyperparameters are nested dicts.

        Example:
            ```python
            hparams = self.context.get_hparams()
            ```
        """
        return self.env.hparams

    def get_hparam(self, name: str) -> Any:
        """Return one hyperparameter. Raises ValueError for an unknown name.

        Args:
            name: Name of the hyperparameter.

        Returns:
            Its value in this trial.

        Example:
            ```python
            learning_rate = self.context.get_hparam("learning_rate")
            ```
        """
        if name not in self.env.hparams:
            names = ", ".join(sorted(self.env.hparams))
            raise ValueError(f"there is no hyperparameter '{name}'; there are: {names}")
        return self.env.hparams[name]

    def get_initial_batch(self) -> int:
        """Return the number of batches already trained when this process started.

        Returns:
            0 unless the trial continues from a checkpoint.

        Example:
            ```python
            is_resumed = self.context.get_initial_batch() > 0
            ```
        """
        return self.env.steps_completed

    def get_tensorboard_path(self) -> pathlib.Path:
        """Return the directory for this process's TensorBoard event files.

        Returns:
            A path, which may not exist yet.

        Example:
            ```python
            writer = SummaryWriter(log_dir=str(self.context.get_tensorboard_path()))
            ```
        """
        return self._core.train.get_tensorboard_path()

    def get_stop_requested(self) -> bool:
        """Whether the script requested to stop.

        Example:
            ```python
            for batch in loader:
                train(batch)
                if context.get_stop_requested():    # set by set_stop_requested()
                    break
            ```
        """
        return self._stop_requested

    def set_stop_requested(self, stop_requested: bool) -> None:
        """Request to stop training.

        Args:
            stop_requested: Whether to stop at the end of the current batch.

        Raises:
            AssertionError: If it is not a bool.

        Example:
            ```python
            if math.isnan(loss.item()):
                self.context.set_stop_requested(True)
            ```
        """
        if not isinstance(stop_requested, bool):
            raise AssertionError(f"set_stop_requested() takes a bool, not {stop_requested!r}")
        self._stop_requested = stop_requested


class TrialController:
    """Base class for custom trainer loops. This library's own trainers do not use it."""

    def __init__(self, context: Any, env: EnvContext, workloads: Sequence[Any] | None = None) -> None:
        self.context, self.env, self.workloads = context, env, workloads

    @classmethod
    def pre_execute_hook(cls, env: EnvContext, distributed_backend: Any) -> None:
        """Called before the trial is constructed."""

    @classmethod
    def from_trial(
        cls, trial_inst: Any, context: Any, env: EnvContext, workloads: Sequence[Any] | None = None
    ) -> TrialController:
        """Create a controller for this trial. Subclasses define it."""
        raise NotImplementedError(f"{cls.__name__}.from_trial() is not defined")

    @classmethod
    def supports_mixed_precision(cls) -> bool:
        """Whether the trainer supports mixed precision."""
        return False

    def run(self) -> None:
        """Run training. Subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__}.run() is not defined")

    def upload_tb_files(self) -> None:
        """Upload the TensorBoard event files."""
        self.context._core.train.upload_tensorboard_files()

    def close(self) -> None:
        """Release resources."""
