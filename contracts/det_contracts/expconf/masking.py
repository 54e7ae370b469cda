"""Secrets in a configuration: where they are, and how to mask them for display."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from det_contracts.expconf.environment import CREDENTIALS

MASK = "********"
SecretPath = tuple[str, ...]
"""Keys that lead to a secret. For an environment variable, the last one is its name."""
Change = Callable[[SecretPath, Any], Any]

_STORAGE = ("access_key", "secret_key", "connection_string", "credential")
SHELL_KEYS = (("shell", "private_key"), ("serves", "host_key"))
"""Where the gateway stores the keys of a shell: the owner's login key and the server's host key."""
_NAMES = re.compile(
    r"(.*_)?(KEY|KEY_ID|APIKEY|TOKEN|SECRET|CREDENTIALS?|CREDS|PASSWD|PASSPHRASE)|.*PASSWORD.*", re.IGNORECASE
)


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name is assumed to be a secret."""
    return _NAMES.fullmatch(name) is not None


def is_masked(value: Any) -> bool:
    """Whether a value consists only of asterisks."""
    # A user may submit a configuration that was shown before; then the mask must not replace the secret.
    return isinstance(value, str) and value.count("*") == len(value) >= len(MASK)


def mask_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which every secret that is set is replaced by asterisks (sections 2.4 and 2.6)."""
    return replace_secrets(config, lambda where, value: MASK)


def secrets_of(config: Mapping[str, Any]) -> dict[SecretPath, Any]:
    """Return every secret that is set, by its location."""
    secrets: dict[SecretPath, Any] = {}

    def note(where: SecretPath, value: Any) -> Any:
        secrets[where] = value
        return value

    replace_secrets(config, note)
    return secrets


def replace_secrets(config: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Return a copy with every secret replaced by the result of `change`. Nothing else is copied."""
    shown = dict(config)
    storage = "checkpoint_storage"
    _change_map(shown, storage, lambda inner: _keys(inner, (storage,), _STORAGE, change))
    _change_map(shown, "environment", lambda inner: _environment(inner, change))
    _change_map(shown, "tensorboard", lambda inner: _sources(inner, change))
    for above, key in SHELL_KEYS:
        _change_map(shown, above, partial(_keys, above=(above,), keys=(key,), change=change))
    return shown


def _change_map(within: dict[str, Any], key: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a copy of the map under this key, if there is one."""
    if isinstance(within.get(key), dict):
        within[key] = dict(within[key])
        change(within[key])


def _keys(within: dict[str, Any], above: SecretPath, keys: tuple[str, ...], change: Change) -> None:
    for key in keys:
        if within.get(key) is not None:
            within[key] = change((*above, key), within[key])


def _environment(within: dict[str, Any], change: Change) -> None:
    above = ("environment", "registry_auth")
    _change_map(within, "registry_auth", lambda inner: _keys(inner, above, CREDENTIALS, change))
    key = "environment_variables"
    if isinstance(within.get(key), list):
        within[key] = _variables(within[key], ("environment", key), change)

    def by_device(inner: dict[str, Any]) -> None:
        for device, listed in inner.items():
            if isinstance(listed, list):
                inner[device] = _variables(listed, ("environment", key, device), change)
            elif isinstance(listed, str) and listed and is_secret_name(device):
                # These are not kinds of devices but variable names, each with its value.
                inner[device] = change(("environment", key, device), listed)

    _change_map(within, key, by_device)


def _variables(listed: list[Any], above: SecretPath, change: Change) -> list[Any]:
    return [_variable(item, above, change) for item in listed]


def _variable(item: Any, above: SecretPath, change: Change) -> Any:
    name, _, value = item.partition("=") if isinstance(item, str) else ("", "", "")
    return f"{name}={change((*above, name), value)}" if value and is_secret_name(name) else item


def _source(number: int, change: Change, storage: dict[str, Any]) -> None:
    _keys(storage, ("tensorboard", "sources", str(number), "storage"), _STORAGE, change)


def _sources(within: dict[str, Any], change: Change) -> None:
    """Mask the storages that a TensorBoard reads from."""
    if not isinstance(within.get("sources"), list):
        return
    shown = [dict(source) if isinstance(source, dict) else source for source in within["sources"]]
    for number, source in enumerate(shown):
        if isinstance(source, dict):
            _change_map(source, "storage", partial(_source, number, change))
    within["sources"] = shown
