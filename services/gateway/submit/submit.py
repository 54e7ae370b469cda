"""The steps of a submission, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from det_contracts import commands
from det_contracts.context import Context
from det_contracts.problems import Refused, invalid, unavailable
from services.gateway import places
from services.gateway.backend import Backend
from services.gateway.commands.templates import template_id
from services.gateway.domain import State
from services.gateway.submit import archive, configuration
from services.gateway.submit.probe import probe
from services.gateway.web.bodies import ContextItem, CreateExperiment


class Checked(msgspec.Struct, frozen=True):
    """A wish that can be granted."""

    command: commands.CreateExperiment
    warnings: list[str]


async def checked(backend: Backend, wish: CreateExperiment, user: str) -> Checked:
    """Complete a wish and, unless it is only to be checked, store its code.

    Raises `Refused`, or `archive.TooLarge`.
    """
    state = backend.catalogue.state
    config = configuration.complete(
        wish.config, backend.storage, _template(wish, state), unmanaged=wish.unmanaged
    )
    project_id = _project(wish, config, state)
    source = configuration.source_checkpoint(config, state)
    # What runs elsewhere uses neither the workers' storage nor their slots.
    warnings = [] if wish.unmanaged else await _check_cluster(backend, config)
    context = await _context(backend, wish)
    command = commands.CreateExperiment(
        user=user,
        config=config,
        original_config=wish.config,
        context=context,
        parent_id=wish.parent_id or None,
        project_id=project_id,
        source_checkpoint=source,
        activate=wish.activate,
        unmanaged=wish.unmanaged,
    )
    return Checked(command, warnings)


async def _check_cluster(backend: Backend, config: dict[str, Any]) -> list[str]:
    """Whether the cluster can run it; returns what is worth telling, raises `Refused`."""
    storage, directories = config["checkpoint_storage"], backend.settings.checkpoints_probe
    await asyncio.to_thread(probe, storage, directories=directories)
    return configuration.warnings(config, backend.catalogue.state) + await _fit(backend, config)


def _template(wish: CreateExperiment, state: State) -> dict[str, Any] | None:
    if not wish.template:
        return None
    known = state.templates.get(template_id(wish.template))
    if known is None:
        raise invalid(f"template '{wish.template}' not found")
    return known.config


async def _fit(backend: Backend, config: dict[str, Any]) -> list[str]:
    """What to tell of slots that its pool can never give; raises `Refused` (400) for an unknown pool."""
    resources = config["resources"]
    try:
        why = await backend.peers.fits(resources["resource_pool"], resources["slots_per_trial"])
    except Refused as refusal:
        if refusal.problem.code != "not_found":
            raise
        raise invalid(
            f"resource pool {resources['resource_pool']} does not exist or is not available to "
            f"workspace id 1: {refusal.problem.message}"
        ) from None
    return [why] if why else []


def _project(wish: CreateExperiment, config: dict[str, Any], state: State) -> int:
    """Where it is filed: as the request says, else the configuration, else its parent's place."""
    parent = state.experiments.get(wish.parent_id) if wish.parent_id else None
    if wish.project_id:
        id = wish.project_id
    elif config.get("workspace"):
        id = places.named(state, config["workspace"], config["project"]).project_id
    else:
        id = parent.project_id if parent is not None else places.FIRST
    return places.open_project(state, id).project_id


async def _context(backend: Backend, wish: CreateExperiment) -> Context | None:
    """Where the code lies, once it is stored; a fork without code of its own has its parent's."""
    parent = backend.catalogue.submission(wish.parent_id) if wish.parent_id else None
    if not wish.model_definition:
        return parent.context if parent is not None else None
    return await store_context(backend, wish.model_definition, only_check=wish.validate_only)


async def store_context(
    backend: Backend, items: Sequence[ContextItem], *, only_check: bool = False
) -> Context:
    """Pack files and keep them; raises `Refused`, or `archive.TooLarge`."""
    try:
        return await asyncio.to_thread(_store, backend, items, only_check)
    except OSError as error:
        raise unavailable(f"the context cannot be stored: {error}") from None


def _store(backend: Backend, items: Sequence[ContextItem], only_check: bool) -> Context:
    with archive.packed(items) as (context, file):
        if not only_check:
            backend.blobs.put(context.digest, file)
        return context
