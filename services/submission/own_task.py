"""Turns a request for a command, TensorBoard, notebook or shell into a task (REST spec, section 7)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec

from det_contracts.events.scheduler import OwnKind
from det_contracts.problems import invalid, not_found
from services.people.commands.templates import template_id
from services.rest_requests.bodies import TaskBody
from services.rest_requests.task_defaults import read
from services.submission import secrets
from services.submission.config_defaults import default_pools, pick_pool
from services.submission.idle import idle_timeout_s, idle_type
from services.submission.ssh_keys import new_pair

if TYPE_CHECKING:
    from services.rest_requests.backend import Backend

DEFAULT_SLOTS: dict[OwnKind, int] = {"COMMAND": 1, "TENSORBOARD": 0, "NOTEBOOK": 1, "SHELL": 1}
TITLES: dict[OwnKind, str] = {
    "COMMAND": "Command",
    "TENSORBOARD": "TensorBoard",
    "NOTEBOOK": "Notebook",
    "SHELL": "Shell",
}
PROGRAMS: dict[OwnKind, str] = {
    "TENSORBOARD": "determined.exec.tensorboard",
    "NOTEBOOK": "determined.exec.notebook",
    "SHELL": "determined.exec.shell",
}
"""The SDK module that each kind of task runs."""
RESERVED_FIELDS = ("tensorboard", "serves", "shell")
"""Parts of a configuration that only the gateway may write."""


class TaskRequest(msgspec.Struct):
    """A completed request for a task."""

    name: str
    config: dict[str, Any]
    slots: int
    pool: str
    priority: int | None


def complete_request(body: TaskBody, kind: OwnKind, backend: Backend, workspace_id: int) -> TaskRequest:
    """Complete a checked request with its template and defaults. Raises `Refused` (400) naming the field."""
    config = _merge(_template(body.template_name, backend), body.config)
    pools = default_pools(backend.catalogue.state, workspace_id)
    pool = _pool(config, pools, DEFAULT_SLOTS[kind])
    config = apply_task_defaults(config, backend, pool)
    for name in RESERVED_FIELDS:
        # A user who could write them would choose the keys of a shell, or which storages a TensorBoard reads.
        config.pop(name, None)
    resources = config.get("resources") or {}
    given_slots, priority = resources.get("slots"), resources.get("priority")
    slots = DEFAULT_SLOTS[kind] if given_slots is None else given_slots
    config["resources"] = resources | {"slots": slots, "resource_pool": pool}
    config["entrypoint"] = _entrypoint(config, kind)
    _check_environment(config)
    config = secrets.unmask(config)
    name = str(config.get("description") or _title(config, kind))[:200]
    if kind == "NOTEBOOK":
        if config.get("idle_timeout") is None and backend.settings.notebook_timeout > 0:
            # Kept with the notebook: what it reports is judged by its own configuration.
            config["idle_timeout"] = backend.settings.notebook_timeout
        config["serves"] = {"idle_type": idle_type(config), "watched": idle_timeout_s(config) is not None}
    return TaskRequest(name, config, slots, pool, priority)


def _pool(config: dict[str, Any], pools: tuple[str, str], slots: int) -> str:
    """The named pool, or else the workspace's. `slots` is the default slot count."""
    resources = config.get("resources") or {}
    pool: str = resources.get("resource_pool") or pick_pool(pools, resources.get("slots", slots))
    return pool


def apply_task_defaults(config: dict[str, Any], backend: Backend, pool: str) -> dict[str, Any]:
    """Add the pool's task defaults. Environment variables are combined; the task's own take precedence."""
    # They are read once and shared by all requests, and `_merge` puts parts of them into the result.
    pool_defaults = copy.deepcopy(read(backend.settings.pools).for_pool(pool))
    if not pool_defaults:
        return config
    merged = _merge(pool_defaults, config)
    default_variables = (pool_defaults.get("environment") or {}).get("environment_variables")
    own = (config.get("environment") or {}).get("environment_variables") or []
    if default_variables and isinstance(own, list):
        merged["environment"]["environment_variables"] = {
            kind: [*default_variables[kind], *own] for kind in default_variables
        }
    return merged


def _template(name: str, backend: Backend) -> dict[str, Any]:
    if not name:
        return {}
    template = backend.catalogue.state.templates.get(template_id(name))
    if template is None:
        raise not_found("template", name)
    return secrets.unseal_config(
        copy.deepcopy(template.config), secrets.template_owner(template.name), backend.sealer
    )


def _merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _entrypoint(config: dict[str, Any], kind: OwnKind) -> list[str]:
    if kind in PROGRAMS:
        return ["python3", "-m", PROGRAMS[kind]]
    entrypoint = config.get("entrypoint")
    words = [entrypoint] if isinstance(entrypoint, str) else entrypoint
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise invalid("config.entrypoint: a command line is expected, a string or a list of strings")
    # A single string is a shell command line.
    return ["sh", "-c", words[0]] if len(words) == 1 else list(words)


def _title(config: dict[str, Any], kind: OwnKind) -> str:
    if kind == "TENSORBOARD":
        return f"{TITLES[kind]}: curves"
    if kind != "COMMAND":
        return TITLES[kind]
    words = config["entrypoint"]
    return f"{TITLES[kind]}: {words[-1] if words[:2] == ['sh', '-c'] else ' '.join(words)}"


def _check_environment(config: dict[str, Any]) -> None:
    listed = (config.get("environment") or {}).get("environment_variables") or []
    groups = listed.values() if isinstance(listed, dict) else [listed]
    for group in groups:
        if not isinstance(group, list) or not all(isinstance(item, str) for item in group):
            raise invalid("config.environment.environment_variables: strings NAME=VALUE are expected")


def check_work_dir(config: dict[str, Any], *, has_files: bool) -> None:
    """Raise `Refused` (400) if a task cannot work in the folder that its configuration names."""
    folder = config.get("work_dir")
    if folder and not folder.startswith("/"):
        raise invalid(f"config.work_dir is {folder[:100]!r}: the absolute path of a folder is expected")
    if folder and has_files:
        raise invalid(
            "config.work_dir and a context directory cannot be given together: submitted files lie in a "
            "folder of the task's own"
        )


def add_ssh_keys(config: dict[str, Any]) -> None:
    """Generate a shell's key pairs: one authenticates its owner, the other its server."""
    owner, host = new_pair(), new_pair()
    config["shell"] = {"private_key": owner.private, "public_key": owner.public, "host_key": host.public}
    config["serves"] = {"authorized_key": owner.public, "host_key": host.private}
