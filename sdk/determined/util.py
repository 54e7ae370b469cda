"""Utility functions that published example scripts import from this module."""

from __future__ import annotations

import inspect
import itertools
import json
import logging
import math
import os
import pathlib
import random
import re
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from determined import _absent
from determined.errors import InvalidExperimentException

__path__: list[str] = []
_absent.explain_in(__name__)

_SECRETS = ("access_key", "secret_key", "connection_string", "credential")
_REGISTRY_SECRETS = ("password", "auth", "identitytoken", "registrytoken")
_LEGACY = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")
logger = logging.getLogger("determined")


def merge_dicts(base_dict: dict[str, Any], source_dict: dict[str, Any]) -> dict[str, Any]:
    """Return `base_dict` overlaid by `source_dict`, merging nested dicts. Neither argument is modified."""
    merged = dict(base_dict)
    for key, value in source_dict.items():
        below = merged.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = merge_dicts(below, value) if both else value  # type: ignore[arg-type]
    return merged


def make_metrics(num_inputs: int | None, batch_metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """Combine the metrics of single batches with their averages over the batches that have each metric.

    The average of what has none, such as texts, is None.
    """
    from determined._training.reducer import mean_of_numbers

    names = {name: None for metrics in batch_metrics for name in metrics}
    averages = {
        name: mean_of_numbers([metrics[name] for metrics in batch_metrics if name in metrics])
        for name in names
    }
    made: dict[str, Any] = {"batch_metrics": batch_metrics, "avg_metrics": averages}
    return made if num_inputs is None else {**made, "num_inputs": num_inputs}


def validate_batch_metrics(batch_metrics: Sequence[dict[str, Any]]) -> None:
    """Raise InvalidExperimentException unless all batches have metrics of the same names."""
    for place, metrics in enumerate(batch_metrics):
        if metrics.keys() != batch_metrics[0].keys():
            raise InvalidExperimentException(
                f"batch {place} has the metrics {sorted(metrics)}, the first one {sorted(batch_metrics[0])}"
            )


def calculate_batch_sizes(hparams: dict[str, Any], slots_per_trial: int, trialname: str) -> tuple[int, int]:
    """Return the batch size per slot and in total, from the hyperparameter `global_batch_size`.

    Raises InvalidExperimentException if it is missing, not an integer, or smaller than the number of slots.
    """
    size = hparams.get("global_batch_size")
    # A bool is an int in Python, and `true` in YAML is no batch size.
    if isinstance(size, bool) or not isinstance(size, int):
        raise InvalidExperimentException(
            f"training of a {trialname} needs an integer global_batch_size, not {size!r}"
        )
    if size < slots_per_trial:
        raise InvalidExperimentException(
            f"global_batch_size {size} is below the number of slots, {slots_per_trial}"
        )
    # A trial without slots trains in one process, too.
    processes = max(slots_per_trial, 1)
    per_slot = size // processes
    if per_slot * processes != size:
        logger.warning("global_batch_size %d is lowered to %d", size, per_slot * processes)
    return per_slot, per_slot * processes


def is_numerical_scalar(n: Any) -> bool:
    """Whether a value is a single number, including a zero-dimensional tensor or array."""
    if isinstance(n, int | float):
        return True
    return getattr(n, "ndim", None) == 0 and not isinstance(n, str)


def humanize_float(n: float) -> float:
    """Round a number to four significant digits, or to an integer if it has more digits than that."""
    if isinstance(n, int) or not math.isfinite(n):
        return n
    return round(n) if abs(n) >= 1e4 else float(f"{n:.4g}")


def make_timing_log(verb: str, duration: float, num_inputs: int, num_batches: int) -> str:
    """Format how much was processed in `duration` seconds, as trainers log it."""
    records, batches = (n / duration if duration else float("inf") for n in (num_inputs, num_batches))
    return (
        f"{verb}: {num_inputs} records in {humanize_float(duration)}s ({humanize_float(records)} records/s), "
        f"in {num_batches} batches ({humanize_float(batches)} batches/s)"
    )


def filter_duplicates(
    in_list: Iterable[Any], sorter: Callable[[Iterable[Any]], list[Any]] = sorted
) -> set[Any]:
    """Return the items that occur more than once."""
    items = sorter(in_list)
    return {item for item, following in itertools.pairwise(items) if item == following}


def has_param(fn: Callable[..., Any], name: str, pos: int | None = None) -> bool:
    """Whether a function has a parameter of this name, or more than `pos` positional parameters."""
    parameters = list(inspect.signature(fn).parameters.values())
    if any(parameter.name == name for parameter in parameters):
        return True
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    return pos is not None and pos < len(positional)


def get_member_func(obj: Any, func_name: str) -> Any:
    """Return a method of an object, or None if it has no method of this name."""
    function = getattr(obj, func_name, None)
    return function if callable(function) else None


def is_overridden(full_method: Any, parent_class: Any) -> bool:
    """Whether a method of an object, as read from it, is another than that of a base class.

    It may be static, of the class, or a function that was assigned to the object.
    """
    return not is_same_method(full_method, getattr(parent_class, getattr(full_method, "__name__", ""), None))


def is_same_method(method: Any, function: Any) -> bool:
    """Whether a method, as read from an object, is a function of its class, and not one of its own."""
    return getattr(method, "__func__", method) is function


def json_encode(obj: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    """Encode a value as JSON, with arrays and tensors as lists. Raises TypeError if it has no JSON form."""
    from determined.core._encode import encode

    return json.dumps(encode(obj), indent=indent, sort_keys=sort_keys)


def match_legacy_trial_class(arg: str) -> bool:
    """Whether an entrypoint names a trial class as `module:Class`."""
    return bool(_LEGACY.match(arg))


def legacy_trial_entrypoint_to_script(trial_entrypoint: str) -> list[str]:
    """Return the command that trains a trial class."""
    return ["python3", "-m", "determined.exec.harness", trial_entrypoint]


def mask_checkpoint_storage(d: dict[str, Any]) -> dict[str, Any]:
    """Return a storage configuration with its secrets masked."""
    return _masked(d, _SECRETS)


def _masked(d: dict[str, Any], secrets: Iterable[str]) -> dict[str, Any]:
    return {name: "********" if name in secrets and value else value for name, value in d.items()}


def mask_config_dict(d: dict[str, Any]) -> dict[str, Any]:
    """Return an experiment configuration with the secrets of its storage and its image registry masked."""
    masked = dict(d)
    if isinstance(storage := d.get("checkpoint_storage"), dict):
        masked["checkpoint_storage"] = mask_checkpoint_storage(storage)
    environment = d.get("environment")
    if isinstance(environment, dict) and isinstance(login := environment.get("registry_auth"), dict):
        masked["environment"] = {**environment, "registry_auth": _masked(login, _REGISTRY_SECRETS)}
    return masked


def force_create_symlink(src: str, dst: str) -> None:
    """Create a symbolic link at `dst`, replacing whatever is there."""
    path = pathlib.Path(dst)
    # Not followed: the link is replaced, and not what it leads to.
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)
    os.symlink(src, dst, target_is_directory=os.path.isdir(src))


def rmtree_nfs_safe(
    path: str | os.PathLike[str], ignore_errors: bool = False, onerror: Callable[..., Any] | None = None
) -> None:
    """Remove a tree. Ignores the `.nfs` files that NFS keeps for files open elsewhere."""
    try:
        shutil.rmtree(path, ignore_errors=ignore_errors, onerror=onerror)
    except OSError as error:
        left = [file for file in pathlib.Path(path).rglob("*") if file.is_file()]
        # Not all that is left may be ignored: other files mean that removing has failed.
        if not left or any(not file.name.startswith(".nfs") for file in left):
            raise
        logger.warning("files in %s are open elsewhere and were not removed: %s", path, error)


def download_gcs_blob_with_backoff(blob: Any, n_retries: int = 32, max_backoff: float = 32) -> bytes:
    """Return the content of a `google.cloud.storage` blob. Retries failures with exponential back-off."""
    for attempt in range(n_retries):
        try:
            content: bytes = blob.download_as_bytes()
            return content
        except Exception as error:
            if attempt + 1 == n_retries:
                raise
            pause = min(2**attempt + random.random(), max_backoff)  # noqa: S311 - spreads clients out
            logger.warning("a download failed (%s), retrying in %.0f s", error, pause)
            time.sleep(pause)
    raise ValueError(f"n_retries must be at least 1, not {n_retries}")
