"""Hyperparameters, batch sizes and configuration of a trial (Trainer spec, section 3.3)."""

from __future__ import annotations

import logging
from typing import Any

from determined import _arguments
from determined._info import TrialInfo
from determined.errors import InternalException, InvalidExperimentException

logger = logging.getLogger("determined.pytorch")
BATCH_SIZE = "global_batch_size"


class Settings:
    """Settings of a trial, apart from its code."""

    def __init__(
        self,
        hparams: dict[str, Any] | None,
        exp_conf: dict[str, Any] | None,
        slots: int,
        *,
        trial_seed: int | None = None,
        trial_id: int | None = None,
        experiment_id: int | None = None,
    ) -> None:
        if hparams is not None:
            _arguments.mapping("hparams", hparams, "a dict of name to value")
        if exp_conf is not None:
            _arguments.mapping("exp_conf", exp_conf, "an experiment configuration (dict)")
        self.hparams = hparams
        self.exp_conf = exp_conf
        self.trial_seed = trial_seed
        self.trial_id = trial_id
        self.experiment_id = experiment_id
        size = (hparams or {}).get(BATCH_SIZE)
        self._sizes = _batch_sizes(size, slots) if size else None

    @classmethod
    def of_trial(cls, trial: TrialInfo, slots: int, hparams: dict[str, Any] | None = None) -> Settings:
        """Return the settings of a trial on a cluster. `hparams` override the trial's hyperparameters."""
        return cls(
            trial.hparams if hparams is None else hparams,
            trial._config,
            slots,
            trial_seed=trial.trial_seed,
            trial_id=trial.trial_id,
            experiment_id=trial.experiment_id,
        )

    def all_hparams(self) -> dict[str, Any]:
        """Return all hyperparameters. Raises ValueError if there are none."""
        if self.hparams is None:
            raise ValueError("there are no hyperparameters: pass hparams to pytorch.init()")
        return self.hparams

    def hparam(self, name: str) -> Any:
        """Return one hyperparameter. Raises ValueError for an unknown name."""
        hparams = self.all_hparams()
        _arguments.text("name", name, "the name of a hyperparameter (str)")
        if name not in hparams:
            raise ValueError(f"there is no hyperparameter '{name}'; there are: {', '.join(sorted(hparams))}")
        if name == BATCH_SIZE:
            logger.warning("use get_per_slot_batch_size() or get_global_batch_size() for the batch size")
        return hparams[name]

    @property
    def batch_sizes(self) -> tuple[int, int]:
        """Batch size (per slot, over all slots). Raises ValueError if unknown."""
        if self._sizes is None:
            raise ValueError(f"the hyperparameter {BATCH_SIZE} is needed for batch sizes: pass it in hparams")
        return self._sizes

    @property
    def known_global_batch_size(self) -> int | None:
        """Batch size over all slots, if known."""
        return self._sizes[1] if self._sizes else None

    def configuration(self) -> dict[str, Any]:
        """Return the experiment configuration. Raises ValueError if there is none."""
        if self.exp_conf is None:
            raise ValueError("there is no experiment configuration: pass exp_conf to pytorch.init()")
        return self.exp_conf

    def number(self, name: str) -> int:
        """Return the trial's id, experiment id or seed. Raises InternalException off cluster."""
        numbers = {
            "trial id": self.trial_id,
            "experiment id": self.experiment_id,
            "trial seed": self.trial_seed,
        }
        value = numbers[name]
        if value is None:
            raise InternalException(f"the {name} is known on a cluster only")
        return value


def seed_of(config: dict[str, Any]) -> int:
    """Return the seed in a configuration, or 0."""
    return int((config.get("reproducibility") or {}).get("experiment_seed", 0))


def _batch_sizes(size: Any, slots: int) -> tuple[int, int]:
    if isinstance(size, bool) or not isinstance(size, int):
        raise InvalidExperimentException(f"{BATCH_SIZE} must be an int, not {size!r}")
    if size < slots:
        raise InvalidExperimentException(f"{BATCH_SIZE} {size} is below the number of slots, {slots}")
    per_slot = size // slots
    if per_slot * slots != size:
        logger.warning("%s %d is lowered to %d: %d on each of %d slots", BATCH_SIZE, size, per_slot * slots,
                       per_slot, slots)  # fmt: skip
    return per_slot, per_slot * slots
