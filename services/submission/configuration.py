"""Turns a submitted configuration text into the configuration that is stored."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from det_contracts import expconf
from det_contracts.problems import Refused, invalid
from services.catalogue.domain import Checkpoint, State
from services.kit import yamlfile
from services.submission import config_defaults
from services.submission.jobs import COMPLETE, MERGE, TASK
from services.submission.masked_text import masked_text

if TYPE_CHECKING:
    from services.rest_requests.backend import Backend

TEXT_LIMIT_BYTES = 1 << 20
"""Maximum size of a configuration text. It becomes part of an event, and the broker accepts 8 MiB."""
SMALL_BYTES = 4 << 10
"""Size up to which a configuration is parsed on the event loop, which takes a few milliseconds at most."""
NO_SEARCH = {"name": "single", "metric": "loss", "max_length": 1_000_000_000}
"""Searcher of an unmanaged experiment that names none. Its script decides how long to train."""
SLOTS_EXCEEDED = "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"


async def complete(
    backend: Backend,
    who: str,
    text: str,
    template: dict[str, Any] | None = None,
    *,
    under: dict[str, Any] | None = None,
    unmanaged: bool = False,
) -> tuple[dict[str, Any], str]:
    """Return the completed configuration, and the text without its secrets. Raises `Refused` (400).

    `template` takes precedence over `under`, which `config_defaults.collect` returns. An unmanaged
    configuration needs no fields, because it only describes what runs elsewhere. Anything but a small
    configuration is processed in another process.
    """
    if len(text) > TEXT_LIMIT_BYTES or len(text.encode()) > TEXT_LIMIT_BYTES:
        raise invalid(f"the configuration is larger than {TEXT_LIMIT_BYTES} bytes")
    arguments: dict[str, Any] = {
        "text": text,
        "under": under if under is not None else config_defaults.collect(backend),
        "template": template,
        "unmanaged": unmanaged,
        # Chance and time enter here, so that the other process computes from its argument alone.
        "seed": int(time.time()),
        "name": expconf.random_name(random.choice),
    }
    if _is_small(text, template):
        completed = complete_in_process(**arguments)
    else:
        completed = await backend.offload.run(who, COMPLETE, arguments)
    return completed["config"], completed["text"]


def _is_small(text: str, template: dict[str, Any] | None) -> bool:
    if len(text) > SMALL_BYTES or "&" in text:
        # With YAML anchors, a few lines can expand to a hundred thousand values.
        return False
    return template is None or len(msgspec.json.encode(template)) <= SMALL_BYTES


def complete_in_process(
    text: str,
    under: dict[str, Any],
    template: dict[str, Any] | None,
    unmanaged: bool,
    seed: int,
    name: str,
) -> dict[str, Any]:
    """Complete a configuration in this process; return `config` and `text`. A large one takes seconds."""
    text = yamlfile.join_surrogates(text)
    try:
        written = yamlfile.parse(text)
    except yamlfile.YamlProblem as error:
        raise invalid(f"the configuration cannot be read as YAML: {error}") from None
    defaults = [template] if template is not None else []
    defaults += config_defaults.defaults_for(under, written, template)
    pool = config_defaults.pool_for(under, written, template)
    if unmanaged and isinstance(written, dict) and not written.get("searcher"):
        defaults += [{"searcher": NO_SEARCH}]
    try:
        config = expconf.complete(written, defaults=defaults, seed=seed, name=name, managed=not unmanaged)
    except expconf.ConfigErrors as errors:
        raise invalid(str(errors)) from None
    config["resources"]["resource_pool"] = config["resources"].get("resource_pool") or pool
    return {"config": config, "text": masked_text(text, written)}


async def check_template(backend: Backend, who: str, name: str, config: Any) -> dict[str, Any]:
    """Check a template's configuration and return it. Raises `Refused` (400)."""
    size = len(msgspec.json.encode(config))
    if size > TEXT_LIMIT_BYTES:
        raise invalid(f"template '{name}' is larger than {TEXT_LIMIT_BYTES} bytes")
    try:
        if size <= SMALL_BYTES:
            return check_template_in_process(config)
        template: dict[str, Any] = await backend.offload.run(who, MERGE, config)
        return template
    except Refused as refusal:
        if refusal.problem.code != "invalid_argument":
            raise
        raise invalid(f"template '{name}': {refusal.problem.message}") from None


def check_template_in_process(config: Any) -> dict[str, Any]:
    """Check a template's configuration in this process; return it unchanged."""
    try:
        expconf.merge(config, {})
    except expconf.ConfigErrors as errors:
        raise invalid(str(errors)) from None
    template: dict[str, Any] = config
    return template


async def check_task(backend: Backend, who: str, config: dict[str, Any]) -> None:
    """Check the configuration of a command, notebook, shell or TensorBoard. Raises `Refused` (400)."""
    size = len(msgspec.json.encode(config))
    if size > TEXT_LIMIT_BYTES:
        raise invalid(f"the configuration is larger than {TEXT_LIMIT_BYTES} bytes")
    if size <= SMALL_BYTES:
        check_task_in_process(config)
    else:
        await backend.offload.run(who, TASK, config)


def check_task_in_process(config: dict[str, Any]) -> None:
    """Check a task's configuration in this process. Raises `Refused` (400)."""
    try:
        expconf.check_task(config)
    except expconf.ConfigErrors as errors:
        raise invalid(str(errors)) from None


def searcher_values(config: dict[str, Any], name: str) -> list[Any]:
    """The value of a searcher field as a list, empty if it is not set."""
    value = config["searcher"].get(name)
    return [] if value is None else [value]


def source_checkpoint(config: dict[str, Any], state: State) -> str | None:
    """The checkpoint that every trial starts from. Raises `Refused` (400) if it does not exist.

    A source trial takes precedence over a source checkpoint (configuration spec, section 2.3).
    """
    trial_id = config["searcher"].get("source_trial_id")
    if trial_id is not None:
        return _latest_checkpoint(trial_id, state)
    uuid = config["searcher"].get("source_checkpoint_uuid")
    if uuid is None:
        return None
    try:
        UUID(uuid)
    except ValueError:
        raise invalid(f"invalid source checkpoint UUID: '{uuid}'") from None
    if uuid not in state.checkpoints or not _is_usable(state.checkpoints[uuid]):
        raise invalid(f"no checkpoint found with UUID {uuid}")
    return str(uuid)


def _latest_checkpoint(trial_id: int, state: State) -> str:
    for _, _, uuid in state.checkpoints_of.descending(trial_id):
        if _is_usable(state.checkpoints[uuid]):
            return str(uuid)
    raise invalid(f"no checkpoint found for source trial {trial_id}")


def _is_usable(checkpoint: Checkpoint) -> bool:
    # One that a task is deleting may be gone before the first trial starts.
    return checkpoint.state == "COMPLETED" and not checkpoint.going


def warnings(config: dict[str, Any], state: State, notices: list[str]) -> list[str]:
    """Warnings, as values of the enumeration that clients know."""
    pool = config["resources"]["resource_pool"]
    slots = sum(len(worker.slots) for worker in state.workers.values() if worker.pool == pool)
    return [SLOTS_EXCEEDED] if notices or config["resources"]["slots_per_trial"] > slots else []
