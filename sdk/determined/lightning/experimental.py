"""A logger for Lightning's Trainer that reports to a cluster from outside of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from lightning.pytorch.loggers.logger import Logger, rank_zero_experiment
from lightning.pytorch.utilities import rank_zero_only

from determined.experimental import Determined, core_v2

_VALIDATION = ("val", "test")


class DetLogger(Logger):  # type: ignore[misc]
    """Logger for Lightning's Trainer that reports what Lightning logs as metrics of a trial.

    Off cluster, the script becomes an unmanaged trial when the first metric is logged (`core_v2.init`); it
    stays connected until the script ends. In a task on a cluster, the task's trial is used, but there
    `DetCallback` also handles the search, checkpoints and preemption. Metrics whose names begin with `val` or
    `test` are reported as validation metrics, all others as training metrics.

    Example:
        ```python
        logger = DetLogger(defaults=core_v2.DefaultConfig(name="on my laptop", hparams={"lr": 0.1}))
        lightning.Trainer(max_epochs=10, logger=logger).fit(model, data)
        ```
    """

    def __init__(
        self,
        *,
        defaults: core_v2.DefaultConfig | None = None,
        unmanaged: core_v2.UnmanagedConfig | None = None,
        client: Determined | None = None,
    ) -> None:
        """Store how to connect. Nothing is sent yet.

        Args:
            defaults: Describes the experiment, with its hyperparameters. Required off cluster.
            unmanaged: Location of the experiment, and ids for finding it again.
            client: The connection to use off cluster. Default: the one that `client.login()` would create.
        """
        super().__init__()
        self._arguments = {"defaults": defaults, "unmanaged": unmanaged, "client": client}
        self._connected = False
        self._reported: dict[str, tuple[int, set[str]]] = {}
        """By group: the newest step, and the metrics reported at it."""

    @property
    @rank_zero_experiment  # type: ignore[untyped-decorator, unused-ignore]
    def experiment(self) -> ModuleType:
        """The module `core_v2`, connected to the trial.

        Example:
            ```python
            logger.experiment.train.set_status("preparing the data")
            ```
        """
        if not self._connected:
            core_v2.init(**self._arguments)  # type: ignore[arg-type]
            self._connected = True
        return core_v2

    @property
    def name(self) -> None:
        """None: the experiment is named by its configuration."""

    @property
    def version(self) -> None:
        """None: the cluster numbers trials."""

    @rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def log_hyperparams(self, params: Any) -> None:
        """Do nothing: the hyperparameters of a trial are those of `defaults`, or of the cluster.

        Args:
            params: Not used.

        Example:
            ```python
            DetLogger(defaults=core_v2.DefaultConfig(name="digits", hparams={"lr": 0.1}))    # here
            ```
        """

    @rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Report metrics. A metric that was reported at this step before is left out.

        Args:
            metrics: Values by name.
            step: Number of optimizer steps so far.

        Example:
            ```python
            logger.log_metrics({"lr": 0.01}, step=100)    # self.log() in a LightningModule does this
            ```
        """
        train, steps = self.experiment.train, int(step or 0)
        for group, report in (
            ("training", train.report_training_metrics),
            ("validation", train.report_validation_metrics),
        ):
            new = self._new_metrics(metrics, group, steps)
            # Lightning adds the epoch to all that it logs.
            if new.keys() - {"epoch"}:
                report(steps, new)

    def _new_metrics(self, metrics: Mapping[str, Any], group: str, steps: int) -> dict[str, Any]:
        """The metrics of a group that were not reported at this step, and the epoch with them."""
        before, reported = self._reported.get(group, (-1, set()))
        reported = reported if before == steps else set()
        of_group = {
            name
            for name in metrics
            if name == "epoch" or name.startswith(_VALIDATION) == (group == "validation")
        }
        new = {name: float(metrics[name]) for name in of_group - reported}
        if new.keys() - {"epoch"}:
            self._reported[group] = steps, reported | new.keys()
        return new

    @rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def save(self) -> None:
        """Do nothing: reports are sent as they are made."""

    @rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def finalize(self, status: str) -> None:
        """Do nothing: the trial ends with the script, so that `test()` may follow `fit()`.

        Args:
            status: Not used.

        Example:
            ```python
            trainer.fit(model, data)
            trainer.test(model, data)    # reported to the same trial
            ```
        """
