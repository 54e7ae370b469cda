"""Builds DeepSpeed's configuration from a file and hyperparameters."""

from __future__ import annotations

import copy
import json
from typing import Any


def overwrite_deepspeed_config(
    base_ds_config: str | dict[str, Any], source_ds_dict: dict[str, Any]
) -> dict[str, Any]:
    """Return a DeepSpeed configuration with some values replaced.

    Args:
        base_ds_config: A configuration, or the path of a JSON file with one.
        source_ds_dict: Values that replace those of the base, nested the same way. Other values are kept.

    Returns:
        A new dict. Neither argument is modified.

    Raises:
        TypeError: If the base is neither a path nor a dict.
        ValueError: If the file has a duplicate key.

    Example:
        ```python
        base = {"optimizer": {"type": "Adam", "params": {"lr": 0.1}}}
        overwrite_deepspeed_config(base, {"optimizer": {"params": {"lr": 0.2}}})
        # {"optimizer": {"type": "Adam", "params": {"lr": 0.2}}}
        ```
    """
    if isinstance(base_ds_config, str):
        with open(base_ds_config) as file:
            base = json.load(file, object_pairs_hook=_without_duplicates)
    elif isinstance(base_ds_config, dict):
        base = base_ds_config
    else:
        raise TypeError(
            f"base_ds_config must be a dict or the path of a JSON file, not {type(base_ds_config).__name__}"
        )
    return _merged(base, source_ds_dict)


def _merged(base: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    merged = copy.deepcopy(base)
    for key, value in source.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _merged(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"the DeepSpeed configuration names {', '.join(twice)} more than once")
    return values
