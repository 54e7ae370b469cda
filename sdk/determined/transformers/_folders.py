"""The checkpoint directories that Hugging Face's Trainer writes and resumes from."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
from collections.abc import Iterable
from typing import Any

PREFIX = "checkpoint-"
_NAME = re.compile(r"checkpoint-(\d+)")
_STATE = "trainer_state.json"
_OF_THE_RUN = ("optimizer*", "scheduler.pt", "scaler.pt", "rng_state*", "global_step*", "latest")


def newest(folder: pathlib.Path, names: Iterable[str]) -> pathlib.Path | None:
    """Return the one of these checkpoints with the highest step number.

    An output directory may hold others: a run without a cluster leaves them behind.
    """
    folders = [folder / name for name in names if _NAME.fullmatch(name) and (folder / name).is_dir()]
    return max(folders, key=lambda path: int(path.name.removeprefix(PREFIX)), default=None)


def keep_weights_only(checkpoint: pathlib.Path) -> pathlib.Path:
    """Turn a checkpoint into one of step 0: keep the weights, remove the state of its run."""
    target = checkpoint.with_name(f"{PREFIX}0")
    if checkpoint != target:
        shutil.rmtree(target, ignore_errors=True)
        checkpoint.rename(target)
    for pattern in _OF_THE_RUN:
        for path in target.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    state = target / _STATE
    if state.exists():
        state.write_text(json.dumps(_at_the_beginning(json.loads(state.read_text()))))
    return target


def _at_the_beginning(state: dict[str, Any]) -> dict[str, Any]:
    fresh = {"global_step": 0, "epoch": 0, "log_history": [], "total_flos": 0}
    # The other trial's best checkpoint is not here: the Trainer would look for its files.
    best = {name: None for name in state if name.startswith("best_")}
    return state | {name: value for name, value in fresh.items() if name in state} | best


def belongs(path: str, steps: int) -> bool:
    """Whether a file of the output directory belongs in the checkpoint of a step."""
    return path.startswith((f"{PREFIX}{steps}/", "runs/"))
