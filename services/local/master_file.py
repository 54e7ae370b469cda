"""Reads the configuration file of a 0.25 master for a cluster on this machine.

>>> read({"cluster_name": "lab", "db": {"host": "pg"}}).settings
{'STEADFAST_CLUSTER_NAME': 'lab'}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from det_contracts.administration import LOG_LEVELS
from services.kit import yamlfile
from services.local import master_names as names
from services.local.preconditions import CannotStart

_RIGHTS = {"basic": "basic", "rbac": "rbac"}
_VARIABLES: dict[str, tuple[str, Mapping[str, str] | None]] = {
    "cluster_name": ("STEADFAST_CLUSTER_NAME", None),
    "webhooks.base_url": ("STEADFAST_PUBLIC_URL", None),
    "log.level": ("STEADFAST_LOG_LEVEL", LOG_LEVELS),
    "security.authz.type": ("STEADFAST_AUTHZ", _RIGHTS),
}
"""Setting -> environment variable, and the mapping of its values; None: any string, unchanged."""
_TIMEOUTS = {
    "tensorboard_timeout": "STEADFAST_TENSORBOARD_TIMEOUT",
    "notebook_timeout": "STEADFAST_NOTEBOOK_TIMEOUT",
}
"""Setting in seconds -> environment variable."""
LAST_PORT = 65535
LONGEST_S = 10 * 365 * 86400


@dataclass(frozen=True)
class MasterFile:
    """The supported part of what a file asks for."""

    port: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    """Environment variables of all processes."""
    pools: dict[str, Any] = field(default_factory=dict)
    """Its resource pools, in the format of a `STEADFAST_POOLS` file; empty if it has none."""
    unused: dict[str, str] = field(default_factory=dict)
    """Each setting of the file without effect -> why, and what to use instead."""

    def warnings(self) -> list[str]:
        """Return the settings without effect, one line per reason."""
        by_reason: dict[str, list[str]] = {}
        for name, why in self.unused.items():
            by_reason.setdefault(why, []).append(name)
        return [
            f"Note: {', '.join(unused)} {'has' if len(unused) == 1 else 'have'} no effect: {why}"
            for why, unused in by_reason.items()
        ]


def load(path: Path) -> MasterFile:
    """Read the file at `path`. Raises `CannotStart` with every problem and its place."""
    try:
        content = yamlfile.parse(path.read_text())
        return read({} if content is None else content)
    except (OSError, ValueError) as error:
        raise CannotStart(f"cannot read --master-config-path {path}: {error}") from None
    except CannotStart as error:
        raise CannotStart(f"--master-config-path {path} is invalid:\n{error}") from None


def read(content: Any) -> MasterFile:
    """Interpret the content of a file. Raises `CannotStart` with every problem, one per line."""
    problems: list[str] = []
    values_by_path = dict(_find_settings("", "", content, problems))
    settings = dict(_variables(values_by_path, problems)) | dict(_timeouts(values_by_path, problems))
    port = values_by_path.get("port")
    if port is not None and not (type(port) is int and 0 < port <= LAST_PORT):
        problems.append(f"port must be 1 to {LAST_PORT}, not {port!r}")
    if problems:
        raise CannotStart("\n".join(f"  {problem}" for problem in problems))
    unused = {
        setting_path: why
        for setting_path in values_by_path
        if (why := names.why_unused(_setting_name(setting_path)))
    }
    settings |= _storage(content, unused)
    kind = values_by_path.get("resource_manager.type", "agent")
    unused |= {} if kind == "agent" else {f"resource_manager.type: {kind}": names.NO_SUCH_MANAGER}
    return MasterFile(port, settings, _pools(content, unused), unused)


def _find_settings(
    setting_path: str, name: str, value: Any, problems: list[str]
) -> Iterator[tuple[str, Any]]:
    """Yield each setting with its place in the file. `name` is the place without list indexes."""
    if name and names.is_known(name):
        yield setting_path, value
    elif name and not names.has_children(name):
        # A name unlike any known one is hardly a typo, and some master may have it: only report it.
        if hint := names.suggest(name):
            problems.append(f'{setting_path} is not a setting of a master; did you mean "{hint}"?')
        yield setting_path, value
    elif isinstance(value, list) and names.has_children(f"{name}[]"):
        for number, element in enumerate(value):
            yield from _find_settings(f"{setting_path}[{number}]", f"{name}[]", element, problems)
    elif isinstance(value, dict) and not names.has_children(f"{name}[]"):
        for key, child in value.items():
            yield from _find_settings(_join(setting_path, key), _join(name, key), child, problems)
    elif value is not None:
        kind = "list" if names.has_children(f"{name}[]") else "map"
        problems.append(f"{setting_path or 'the file'}: a {kind} is expected, not {value!r}")


def _join(parent: str, key: Any) -> str:
    return f"{parent}.{key}" if parent else str(key)


def _setting_name(setting_path: str) -> str:
    """Return a place without its list indexes."""
    head, *members = setting_path.split("[")
    return head + "".join(f"[{member.lstrip('0123456789')}" for member in members)


def _variables(values_by_path: Mapping[str, Any], problems: list[str]) -> Iterator[tuple[str, str]]:
    for name, (variable, values) in _VARIABLES.items():
        value = values_by_path.get(name)
        if value is None:
            continue
        if not isinstance(value, str) or (values is not None and value not in values):
            problems.append(
                f"{name} must be {'one of ' + ', '.join(values) if values else 'a string'}, not {value!r}"
            )
        else:
            yield variable, values[value] if values else value


def _timeouts(values_by_path: Mapping[str, Any], problems: list[str]) -> Iterator[tuple[str, str]]:
    for name, variable in _TIMEOUTS.items():
        value = values_by_path.get(name)
        if type(value) is int and 0 < value <= LONGEST_S:
            yield variable, str(value)
        elif value is not None:
            problems.append(f"{name} must be a whole number of seconds, at least 1, not {value!r}")


def _storage(content: Mapping[str, Any], unused: dict[str, str]) -> dict[str, str]:
    """Return the default checkpoint storage; nothing if its type is not supported."""
    storage = content.get("checkpoint_storage") or {}
    kind = storage.get("type")
    if kind is not None and kind not in names.SUPPORTED_STORAGES:
        unused[f"checkpoint_storage of type {kind}"] = names.NO_SUCH_STORAGE
        return {}
    supported = _supported("checkpoint_storage", storage)
    return {"STEADFAST_CHECKPOINTS": json.dumps(supported)} if supported else {}


def _pools(content: Mapping[str, Any], unused: dict[str, str]) -> dict[str, Any]:
    sections = {
        "scheduler": _supported("resource_manager.scheduler", _map(content, "resource_manager", "scheduler")),
        "task_container_defaults": _supported(
            "task_container_defaults", _map(content, "task_container_defaults")
        ),
        "resource_pools": [
            _pool(number, pool, unused) for number, pool in enumerate(content.get("resource_pools") or ())
        ],
    }
    return {name: value for name, value in sections.items() if value}


def _pool(number: int, pool: Mapping[str, Any] | None, unused: dict[str, str]) -> dict[str, Any]:
    supported = _supported("resource_pools[]", pool or {})
    for part in ("scheduler", "task_container_defaults", "provider"):
        inner = _supported(f"resource_pools[].{part}", _map(pool or {}, part))
        supported |= {part: inner} if inner else {}
    kind = _map(supported, "provider").get("type")
    if "provider" in supported and kind not in names.SUPPORTED_PROVIDERS:
        del supported["provider"]
        unused[f"resource_pools[{number}].provider of type {kind}"] = names.NO_SUCH_PROVIDER
    return supported


def _supported(parent: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if f"{parent}.{key}" in names.SUPPORTED}


def _map(content: Mapping[str, Any], *path: str) -> dict[str, Any]:
    value: Any = content
    for name in path:
        value = value.get(name) or {}
    return dict(value)
