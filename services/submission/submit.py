"""The steps of a submission, in order."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec
from pydantic import ValidationError

from det_contracts import commands
from det_contracts.context import Context
from det_contracts.expconf import secrets_of
from det_contracts.problems import Refused, invalid, unavailable
from services.catalogue.domain import State
from services.kit.addresses import AddressRefused, check_keys
from services.kit.allowed_paths import is_within, storage_folder
from services.kit.disk_space import no_space_error
from services.kit.pool_bindings import check_pool
from services.people import workspace_records
from services.people.commands.templates import template_id
from services.rest_requests.backend import Backend
from services.rest_requests.bodies import ContextItem, CreateExperiment
from services.submission import archive, config_defaults, configuration, heavy, images, secrets
from services.submission.checkout import describe_commit
from services.submission.jobs import READ
from services.submission.probe import probe
from services.web.bodies import Shape, read_body
from services.web.spooled_body import spool_body

if TYPE_CHECKING:
    from services.rest_requests.api_call import UserCall


SMALL_BYTES = 32 << 10
"""Size up to which a valid body is parsed on the event loop, which takes less than a change of threads."""


class CheckedSubmission(msgspec.Struct, frozen=True):
    """A valid submission, ready to be carried out."""

    command: commands.CreateExperiment
    warnings: list[str]
    """Values of the enumeration that clients know."""
    notices: list[str]
    """The warnings as sentences, with additional ones."""
    fits: bool
    """Whether its pool could ever hold one of its trials."""


class SubmittedCode:
    """The code of a request: already packed, or few enough files to be packed here."""

    def __init__(self, items: Sequence[ContextItem] = ()) -> None:
        self.items = items
        self.packed: Context | None = None
        self.file: BinaryIO | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the request carried no files."""
        return self.packed is None and not self.items

    @property
    def size_bytes(self) -> int:
        """Its stored size in bytes, or slightly more."""
        return self.packed.size_bytes if self.packed else sum(len(item.content) for item in self.items)

    async def store(self, backend: Backend, who: str, *, only_check: bool = False) -> Context | None:
        """Store the code and return its context, or None if the request carried no code.

        Raises `Refused` or `archive.TooLarge`.
        """
        try:
            if self.packed is not None and self.file is not None:
                put = None if only_check else backend.blobs.put
                return await backend.limits.contexts.run(who, _store_packed, put, self.packed, self.file)
            if not self.items:
                return None
            return await backend.limits.contexts.run(who, _pack_and_store, backend, self.items, only_check)
        except OSError as error:
            raise unavailable(f"the context cannot be stored: {error}") from None


@asynccontextmanager
async def receive(call: UserCall, kind: str) -> AsyncIterator[tuple[Any, SubmittedCode]]:
    """Receive a request of a `kind` (see `heavy.KINDS`) with its files. Raises `Refused`.

    A large request never enters this process's memory: another process parses it and packs its files.
    """
    shape, files = heavy.KINDS[kind]
    backend, who = call.backend, call.user.username
    async with spool_body(call.request, backend.token_key, backend.limits.uploads, who) as body:
        call.digest = body.digest()
        if body.file is None:
            request = await _parse(backend, who, shape, body.in_memory or b"")
            yield request, SubmittedCode(getattr(request, files))
            return
        code = SubmittedCode()
        with tempfile.TemporaryFile() as packed:
            handles = [body.file.fileno(), packed.fileno()]
            answer = await backend.offload.run(who, READ, kind, handles)
            if answer["context"] is not None:
                code.packed = msgspec.convert(answer["context"], Context)
                code.file = cast(BinaryIO, packed)
            yield shape.model_validate(answer["fields"]), code


async def _parse(backend: Backend, who: str, shape: type[Shape], body: bytes) -> Shape:
    """Parse a body in memory. Raises `Refused` (400)."""
    if len(body) <= SMALL_BYTES:
        with contextlib.suppress(ValidationError):
            return shape.model_validate_json(body)
    # Also what has faults, because to describe many takes long.
    return await backend.limits.contexts.run(who, read_body, shape, body)


async def check_submission(
    call: UserCall, request: CreateExperiment, code: SubmittedCode
) -> CheckedSubmission:
    """Complete a submission and, unless it is only to be validated, store its code.

    Raises `Refused` or `archive.TooLarge`.
    """
    backend, user = call.backend, call.user.username
    # Before anything is read: a template may hold secrets, and a fork takes over its parent's configuration.
    check_template(call, request.template)
    if request.parent_id:
        call.check_view("experiment", request.parent_id)
    state = backend.catalogue.state
    under = config_defaults.collect(backend, _workspace(request, state), fixed=bool(request.project_id))
    config, text = await configuration.complete(
        backend, user, request.config, _template(request, backend), under=under, unmanaged=request.unmanaged
    )
    # Again, after the wait: the state may have been loaded anew meanwhile.
    state = backend.catalogue.state
    project_id = _project(request, config, state)
    workspace_id = workspace_records.project(state, project_id).workspace_id
    if not request.unmanaged:
        # The searcher decides. This early check runs before the code is stored, and also when only
        # validating.
        pool = config["resources"]["resource_pool"]
        check_pool(state, pool, workspace_id, workspace_records.workspace(state, workspace_id).name)
    own = config_defaults.workspace_storage(backend, workspace_id)
    config = secrets.unmask_from_parent(backend, config, request.parent_id, user, own)
    call.check_permission("create", "project", project_id)
    call.check_view("trial", *configuration.searcher_values(config, "source_trial_id"))
    call.check_view("checkpoint", *configuration.searcher_values(config, "source_checkpoint_uuid"))
    source = configuration.source_checkpoint(config, state)
    notices = await _check_cluster(backend, request, config, code, user, workspace_id)
    # After every check: nothing is stored for a submission that is refused.
    context = await _store_context(backend, request, code, user)
    # Once more: the code may have taken a while, and the owner of experiments does not know what is archived.
    workspace_records.unarchived_project(backend.catalogue.state, project_id)
    command = commands.CreateExperiment(
        user=user,
        # Last, so that all checks see the secrets, and the log does not.
        config=secrets.seal_config(config, user, backend.sealer),
        original_config=text,
        context=context,
        parent_id=request.parent_id or None,
        project_id=project_id,
        source_checkpoint=source,
        activate=request.activate,
        unmanaged=request.unmanaged,
        agent_user=workspace_records.agent_user_of(state, workspace_id, user),
        commit=describe_commit(request),
    )
    warnings = configuration.warnings(config, state, notices) if not request.unmanaged else []
    unused = (
        []
        if request.unmanaged
        else images.unused_image_warnings(config, config["resources"]["resource_pool"], state)
    )
    return CheckedSubmission(command, warnings, [*notices, *unused], fits=not notices)


async def _check_cluster(
    backend: Backend,
    request: CreateExperiment,
    config: dict[str, Any],
    code: SubmittedCode,
    who: str,
    workspace_id: int,
) -> list[str]:
    """Check that the cluster can run the experiment; return warnings. Raises `Refused`."""
    to_store = None if request.validate_only else code
    # Unmanaged experiments use neither the workers' storage nor their slots.
    storage = None if request.unmanaged else config["checkpoint_storage"]
    disks = check_disks(backend, "the experiment", to_store, who, storage)
    if request.unmanaged:
        await disks
        return []
    # At the same time, as one waits for a disk and the other for the scheduler.
    _, warnings = await asyncio.gather(disks, _capacity_warnings(backend, config, workspace_id))
    return warnings


def check_template(call: UserCall, name: str) -> None:
    """Raise `Refused` unless the user may use the template that a request names, and the secrets in it."""
    if not name:
        return
    call.check_view("template", name)
    template = call.catalogue.state.templates.get(template_id(name))
    # What runs with the secrets can read them, so to see the template is not enough.
    if template is not None and secrets_of(template.config):
        call.check_permission("create_task", "workspace", template.workspace_id)


def _template(request: CreateExperiment, backend: Backend) -> dict[str, Any] | None:
    if not request.template:
        return None
    template = backend.catalogue.state.templates.get(template_id(request.template))
    if template is None:
        raise invalid(f"template '{request.template}' not found")
    return secrets.unseal_config(template.config, secrets.template_owner(template.name), backend.sealer)


async def _capacity_warnings(backend: Backend, config: dict[str, Any], workspace_id: int) -> list[str]:
    """Warnings about slots that the pool can never provide. Raises `Refused` (400) for an unknown pool."""
    resources = config["resources"]
    try:
        why = await backend.peers.misfit_reason(resources["resource_pool"], resources["slots_per_trial"])
    except Refused as refusal:
        if refusal.problem.code != "not_found":
            raise
        raise invalid(
            f"resource pool {resources['resource_pool']} does not exist or is not available to "
            f"workspace id {workspace_id}: {refusal.problem.message}"
        ) from None
    return [why] if why else []


def _workspace(request: CreateExperiment, state: State) -> int:
    """The experiment's workspace if its configuration names none. An unknown project is refused later."""
    parent = state.experiments.get(request.parent_id) if request.parent_id else None
    id = request.project_id or (parent.project_id if parent is not None else workspace_records.FIRST)
    return workspace_records.projects(state).get(id, workspace_records.PROJECT).workspace_id


def _project(request: CreateExperiment, config: dict[str, Any], state: State) -> int:
    """The experiment's project: from the request, else the configuration, else its parent."""
    parent = state.experiments.get(request.parent_id) if request.parent_id else None
    if request.project_id:
        id = request.project_id
    elif config.get("workspace"):
        id = workspace_records.project_named(state, config["workspace"], config["project"]).project_id
    else:
        id = parent.project_id if parent is not None else workspace_records.FIRST
    return workspace_records.unarchived_project(state, id).project_id


async def _store_context(
    backend: Backend, request: CreateExperiment, code: SubmittedCode, who: str
) -> Context | None:
    """Where the code is stored. A fork without code of its own uses its parent's."""
    parent = backend.catalogue.submission(request.parent_id) if request.parent_id else None
    own = await code.store(backend, who, only_check=request.validate_only)
    return own or (parent.context if parent is not None else None)


async def check_disks(
    backend: Backend, what: str, code: SubmittedCode | None, who: str, storage: dict[str, Any] | None = None
) -> None:
    """Check that checkpoints can be stored in `storage`, and that the disks have room for new work.

    Raises `Refused`: 400, or 507 if they have no room besides what is running. Without `code`, nothing new is
    to be stored.
    """
    settings, addresses, own = backend.settings, backend.addresses, dict[str, Path]()
    roots = backend.roots if settings.checkpoints_probe else None
    if storage is not None:
        try:
            check_keys(storage, backend.storage, addresses)
        except AddressRefused as error:
            raise invalid(f"<config>.checkpoint_storage cannot be used: {error}") from None
        if roots is not None and is_within(storage, roots):
            own["checkpoints"] = storage_folder(storage, roots)

    def look() -> str:
        if storage is not None:
            probe(storage, roots, addresses)
        return backend.disks.shortage({"experiments' code": code.size_bytes}, own) if code is not None else ""

    missing = await backend.limits.probes.run(who, look)
    if missing:
        raise no_space_error(what, missing)


def _pack_and_store(backend: Backend, items: Sequence[ContextItem], only_check: bool) -> Context:
    with archive.pack(items) as (context, file):
        if not only_check:
            backend.blobs.put(context.digest, file)
        return context


def _store_packed(put: Callable[[str, BinaryIO], None] | None, context: Context, file: BinaryIO) -> Context:
    file.seek(0)
    if put is not None:
        put(context.digest, file)
    return context
