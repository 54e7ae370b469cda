"""A configuration that may be shown to anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from det_contracts.expconf.environment import CREDENTIALS

MASK = "********"
SECRETS = (
    *(("checkpoint_storage", key) for key in ("access_key", "secret_key", "connection_string", "credential")),
    *(("environment", "registry_auth", key) for key in CREDENTIALS),
)


def masked(config: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with every secret that is set replaced by asterisks (sections 2.4 and 2.6)."""
    shown = dict(config)
    for path in SECRETS:
        _mask(shown, path)
    return shown


def _mask(config: dict[str, Any], path: tuple[str, ...]) -> None:
    key, *rest = path
    inner = config.get(key)
    if not rest and inner is not None:
        config[key] = MASK
    elif rest and isinstance(inner, dict):
        config[key] = dict(inner)
        _mask(config[key], tuple(rest))
