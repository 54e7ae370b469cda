"""Checks the arguments of `core_v2.init`: a wrong one is named at the call, on a cluster and off it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from determined import _arguments
from determined.core._distributed import check_ranks

if TYPE_CHECKING:
    from determined.experimental.core_v2 import DefaultConfig, UnmanagedConfig

_DEFAULTS = ("name", "hparams", "data", "description", "labels", "checkpoint_storage", "searcher")
_UNMANAGED = ("workspace", "project", "external_experiment_id", "external_trial_id")


def check(defaults: Any, unmanaged: Any, client: Any, distributed: Any) -> None:
    """Raise TypeError for an argument, or a field of one, of a wrong type; None is right for each."""
    if defaults is not None:
        _arguments.having("defaults", defaults, _DEFAULTS, "a core_v2.DefaultConfig, or None")
        _check_defaults(defaults)
    if unmanaged is not None:
        _arguments.having("unmanaged", unmanaged, _UNMANAGED, "a core_v2.UnmanagedConfig, or None")
        _check_unmanaged(unmanaged)
    if client is not None:
        expected = "a Determined object, which experimental.Determined(master) makes, or None"
        _arguments.having("client", client, ("_session",), expected)
    if distributed is not None:
        check_ranks("distributed", distributed)


def _check_defaults(defaults: DefaultConfig) -> None:
    for field in ("name", "description"):
        _text(f"defaults.{field}", getattr(defaults, field))
    for field in ("hparams", "data", "searcher"):
        _json(f"defaults.{field}", getattr(defaults, field))
    labels: Any = defaults.labels
    if labels is None:
        return
    if not isinstance(labels, list | tuple):
        raise TypeError(_arguments.wrong("defaults.labels", "a list of texts, or None", labels))
    for number, label in enumerate(labels):
        _arguments.text(f"defaults.labels[{number}]", label)


def _check_unmanaged(unmanaged: UnmanagedConfig) -> None:
    for field in _UNMANAGED:
        _text(f"unmanaged.{field}", getattr(unmanaged, field))


def _text(name: str, value: Any) -> None:
    if value is not None:
        _arguments.text(name, value, "text (str), or None")


def _json(name: str, value: Any) -> None:
    if value is None:
        return
    _arguments.mapping(name, value, "a dict of name to value, or None")
    for key, entry in value.items():
        _arguments.text(f"a name in {name}", key)
        try:
            json.dumps(entry)
        except (TypeError, ValueError, RecursionError):
            expected = "a value that JSON has: text, a number, true or false, None, a list or a dict"
            raise TypeError(_arguments.wrong(f"{name}[{key!r}]", expected, entry)) from None
