"""Training plans from `fit` and goals from the search, in batches (Trainer spec, sections 9, 11, 14)."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec

from determined import core
from determined._info import ClusterInfo
from determined._training.units import NEVER, Batch, Epoch, TrainUnit, configured, to_batches

Policy = Literal["best", "all", "none"]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The validated arguments of `fit`."""

    checkpoint_period: TrainUnit = NEVER
    validation_period: TrainUnit = NEVER
    reporting_period: TrainUnit = NEVER
    max_length: TrainUnit | None = None
    """Length of a run without a search."""
    policy: Policy = "none"
    latest_checkpoint: str | None = None
    step_zero_validation: bool = False
    test_mode: bool = False
    legacy: bool = False
    """Whether the entrypoint names only a class."""

    @classmethod
    def configured(cls, info: ClusterInfo) -> Plan:
        """Return the plan configured by a trial's experiment, whose entrypoint is only a class.

        Raises ValueError for a period in records without a batch size.
        """
        config, size = info.trial._config, info.trial.hparams.get("global_batch_size")
        checkpoint, validation = config.get("min_checkpoint_period"), config.get("min_validation_period")
        return cls(
            checkpoint_period=configured(checkpoint, size) if checkpoint else NEVER,
            validation_period=configured(validation, size) if validation else NEVER,
            reporting_period=Batch(int(config.get("scheduling_unit", 100))),
            policy=config.get("checkpoint_policy", "best"),
            latest_checkpoint=info.latest_checkpoint,
            step_zero_validation=bool(config.get("perform_initial_validation")),
            legacy=True,
        )


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """How far to train, in its own unit and in batches."""

    length: int
    unit: Literal["batches", "records", "epochs"]
    batches: float
    """Infinite for epochs of endless data."""

    def progress(self, steps: int, epoch_length: float, global_batch_size: int | None) -> float:
        """Convert `steps` batches to the goal's unit."""
        if self.unit == "epochs":
            return float(steps // epoch_length) if math.isfinite(epoch_length) else 0.0
        if self.unit == "records":
            return float(steps * (global_batch_size or 1))
        return float(steps)


_UNITS: dict[core.Unit, Literal["batches", "records", "epochs"]] = {
    core.Unit.BATCHES: "batches",
    core.Unit.RECORDS: "records",
    core.Unit.EPOCHS: "epochs",
}


def goal_of_search(
    length: int, unit: core.Unit | None, epoch_length: float, global_batch_size: int | None
) -> Goal:
    """Convert an operation of the search to a goal. Raises ValueError if the configuration names no unit."""
    if unit is None:
        raise ValueError(
            "searcher.max_length needs a unit when training a trial class: write "
            "max_length: {batches: 100}, or records, or epochs"
        )
    return _goal(length, _UNITS[unit], epoch_length, global_batch_size)


def goal_of_run(max_length: TrainUnit, epoch_length: float) -> Goal:
    """Convert the length of a run without a search to a goal."""
    unit: Literal["batches", "epochs"] = "epochs" if isinstance(max_length, Epoch) else "batches"
    return _goal(max_length.length(), unit, epoch_length, None)


def _goal(
    length: int,
    unit: Literal["batches", "records", "epochs"],
    epoch_length: float,
    global_batch_size: int | None,
) -> Goal:
    batches = length * epoch_length if unit == "epochs" else to_batches(unit, length, global_batch_size)
    return Goal(length=length, unit=unit, batches=batches)


def is_reached(period: TrainUnit, steps: int, epoch_length: float) -> bool:
    """Whether there is a boundary after this many batches."""
    if not isinstance(period, Epoch):
        return period.reached(steps)
    if not math.isfinite(epoch_length) or steps % epoch_length:
        return False
    return period.reached(int(steps // epoch_length))


def checked(unit: Any, name: str, default: TrainUnit = NEVER) -> TrainUnit:
    """Return a valid period, or the default for None. Raises TypeError for anything else."""
    if unit is None:
        return default
    if not isinstance(unit, Batch | Epoch):
        raise TypeError(f"{name} must be a pytorch.Batch or a pytorch.Epoch, not {unit!r}")
    return unit
