"""The configuration schema of commands, notebooks, shells and TensorBoards."""

from __future__ import annotations

from det_contracts.expconf.composites import Field, ListOf, Record
from det_contracts.expconf.environment import ENVIRONMENT
from det_contracts.expconf.experiment import ENTRYPOINT
from det_contracts.expconf.faults import Faults
from det_contracts.expconf.json_data import to_json_data
from det_contracts.expconf.resources import RESOURCES
from det_contracts.expconf.scalars import Anything, Boolean, Text
from det_contracts.expconf.sections import BIND_MOUNTS, PBS, SLURM

ROOT = "config"
STAGE = "invalid task configuration"

TASK = Record(
    {
        "description": Field(Text()),
        "entrypoint": Field(ENTRYPOINT),
        "resources": Field(RESOURCES),
        "environment": Field(ENVIRONMENT),
        "bind_mounts": Field(BIND_MOUNTS),
        # A number or a text with units, which only the reader of durations can judge.
        "idle_timeout": Field(Anything()),
        "notebook_idle_type": Field(Text()),
        "tensorboard_args": Field(ListOf(Text())),
        "work_dir": Field(Text()),
        "debug": Field(Boolean()),
        "slurm": Field(SLURM),
        "pbs": Field(PBS),
    }
)


def check_task(config: object) -> None:
    """Raise `ConfigErrors` listing every unknown field and wrong value of a task's configuration.

    >>> check_task({"resources": {"slots": 1}})
    """
    faults = Faults()
    TASK.read(to_json_data(config, ROOT, faults), ROOT, faults)
    faults.raise_any(STAGE)
