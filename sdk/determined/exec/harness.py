"""Trains the class that an entrypoint names: `python3 -m determined.exec.harness MODULE:CLASS`.

Source: launchers spec, section 9. Exits with 0 after training, including preemption and invalid
hyperparameters, and with 1 in all other cases.
"""

from __future__ import annotations

import faulthandler
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import determined as det
from determined._trial import Trial
from determined.launch._node import stop

logger = logging.getLogger("determined.exec.harness")
USAGE = "usage: python3 -m determined.exec.harness MODULE:CLASS"
STACKS_EVERY_S = 30.0
TRIALS = (
    ("determined.pytorch", "PyTorchTrial", "determined.pytorch._legacy"),
    ("determined.pytorch.deepspeed", "DeepSpeedTrial", "determined.pytorch.deepspeed._entry"),
    ("determined.keras", "TFKerasTrial", "determined.keras._entry"),
)
"""(module, base class, module that trains it)."""
BACKENDS = ("USE_HOROVOD", "USE_DEEPSPEED", "USE_TORCH_DISTRIBUTED")


def main(args: Sequence[str] | None = None) -> int:
    """Train until the search ends."""
    words = list(sys.argv[1:] if args is None else args)
    if words in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if len(words) != 1:
        stop(USAGE, code=2)
    info = det.get_cluster_info()
    if info is None or info.task_type != "TRIAL":
        stop("determined.exec.harness runs inside a trial; off cluster train with pytorch.Trainer")
    _set_logging(info.trial._debug)
    several = len(info.slot_ids) > 1 or len(info.container_addrs) > 1
    # Without a launcher only one process would train, on one of the slots, and nobody would notice.
    if several and not any(os.environ.get(name) for name in BACKENDS):
        raise ValueError(
            "a trial on several slots needs one process for each: you must wrap your training script with a "
            "distributed launch layer such as determined.launch.torch_distributed or "
            "determined.launch.horovod."
        )
    if info.trial._debug:
        faulthandler.dump_traceback_later(STACKS_EVERY_S, repeat=True)
    logger.info("Loading Trial implementation with entrypoint %s.", words[0])
    train(trial_class(words[0]), info)
    return 0


def trial_class(name: str) -> type[Trial]:
    """Import `module:Name` from the current directory. Raises AssertionError if it is not a trial class."""
    module_name, colon, path = name.partition(":")
    if not colon or not path:
        stop(f"{name!r} does not name a trial class; write MODULE:CLASS, such as model_def:MyTrial")
    # Missing if Python was started with `-P` or PYTHONSAFEPATH.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    # A module imported earlier under this name may be a different file.
    sys.modules.pop(module_name, None)
    member: Any = importlib.import_module(module_name)
    for part in path.split("."):
        member = getattr(member, part)
    if not isinstance(member, type):
        raise AssertionError(f"{name} is not a class")
    if not issubclass(member, Trial):
        raise AssertionError(f"{name} is not a det.Trial subclass")
    return member


def train(kind: type[Trial], info: det.ClusterInfo) -> None:
    """Train with the framework that a class is written for."""
    entry = entry_of(kind)
    if entry is None:
        stop(f"{kind.__name__} is no {', '.join(name for _, name, _ in TRIALS)}: derive it from one of them")
    entry.train(kind, info)


def entry_of(kind: type[Any]) -> Any:
    """Return the module with `train` and `try_locally` for a class, or None for an unknown framework.

    Importing a class has already imported its base, so no framework is imported just to check.
    """
    for module, name, entry in TRIALS:
        # Only frameworks that the class has imported: importing the others to ask would take seconds.
        base = getattr(sys.modules.get(module), name, None)
        if base is not None and issubclass(kind, base):
            return importlib.import_module(entry)
    return None


def _set_logging(debug: bool) -> None:
    # Only the chief's progress, or each line would appear once per rank; warnings appear all the same.
    quiet = int(os.environ.get("RANK") or 0) > 0
    logging.basicConfig(
        level=logging.DEBUG if debug else logging.WARNING if quiet else logging.INFO, format=det.LOG_FORMAT
    )


if __name__ == "__main__":
    sys.exit(main())
