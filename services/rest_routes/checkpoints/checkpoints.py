"""Checkpoints (REST spec, section 5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import sqlalchemy as sa
from starlette.responses import Response

from det_contracts.commands import DeleteCheckpoints, ListFiles, SetMetadata
from det_contracts.problems import invalid, not_found
from services.catalogue import listing
from services.catalogue.checkpoint_source import run_of
from services.catalogue.display_state import CHECKPOINT_STATES
from services.catalogue.domain import Checkpoint
from services.catalogue.listing import IdPage
from services.catalogue.peers import Report
from services.catalogue.single_reports import report_at
from services.kit import checkpoint_archives as archiving
from services.kit.addresses import AddressRefused, check_keys
from services.kit.checkpoint_files import CheckpointFiles as Files
from services.kit.checkpoint_files import File, FilesMissing, opener
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import (
    CheckpointFiles,
    CheckpointMetadata,
    CheckpointUuids,
    ListedCheckpoints,
)
from services.rest_requests.streaming import Stream
from services.rest_routes.present import records
from services.rest_routes.present.answers import media_schema, page_schema, record_schema
from services.rest_routes.present.checkpoint import checkpoint
from services.rest_routes.present.metrics import VALIDATION
from services.submission import secrets
from services.web.errors import forbidden
from services.web.query import NOTHING, FromQuery, Paged, enum_value, enum_values
from services.web.routes import Routes

router = Routes()
root = Routes()
ARCHIVES = {"application/gzip": True, "application/x-gtar": True, "application/x-tar": False}
"""Media types of downloads, and whether they are compressed."""
Place = tuple[int, int]
"""A trial and the number of steps that it had completed."""


class CheckpointsQuery(Paged):
    """Query parameters of lists of checkpoints."""

    states: Annotated[list[str], enum_values("STATE_", CHECKPOINT_STATES)] = NOTHING
    sort_by: Annotated[str, enum_value("SORT_BY_", listing.CHECKPOINT_SORTS)] = "END_TIME"


@router.get(
    "/experiments/{experiment_id}/checkpoints",
    ("view", "experiment"),
    **page_schema("checkpoints", records.Checkpoint),
)
async def of_experiment(
    call: Authenticated, experiment_id: int, query: FromQuery[CheckpointsQuery]
) -> Response:
    """A page of the checkpoints of an experiment."""
    call.catalogue.experiment(experiment_id)
    return await _list(call, query, experiment_id=experiment_id)


@router.get(
    "/trials/{trial_id}/checkpoints", ("view", "trial"), **page_schema("checkpoints", records.Checkpoint)
)
async def of_trial(call: Authenticated, trial_id: int, query: FromQuery[CheckpointsQuery]) -> Response:
    """A page of the checkpoints of a trial."""
    call.catalogue.trial(trial_id)
    return await _list(call, query, trial_id=trial_id)


async def _list(call: UserCall, query: CheckpointsQuery, **of: int) -> Response:
    page = await call.catalogue.read(_query(query, **of))
    await call.catalogue.evicted.load(("checkpoints", uuid) for uuid in page.ids)
    checkpoints = call.catalogue.state.checkpoints
    records = [checkpoints[uuid] for uuid in page.ids if uuid in checkpoints]
    validations = await validations_at(call, ((record.trial_id, record.steps) for record in records))

    async def show(some: Sequence[Checkpoint]) -> list[dict[str, Any]]:
        return await show_all(call, some, validations)

    return await call.answer_list("checkpoints", records, show, pagination=page.span.pagination)


def _query(query: CheckpointsQuery, **of: int) -> Callable[[sa.Connection], IdPage]:
    return lambda connection: listing.checkpoint_page(
        connection, query.states, query.sort_by, query.window, **of
    )


async def show_all(
    call: UserCall, records: Sequence[Checkpoint], validations: Mapping[Place, Report]
) -> list[dict[str, Any]]:
    """Checkpoints with their validations, without those whose experiment was deleted meanwhile."""
    # Again for each part: what is not used for a while leaves memory.
    await call.catalogue.evicted.load(
        key
        for record in records
        for key in (("submissions", record.experiment_id), ("checkpoints", record.uuid))
    )
    state = call.catalogue.state
    return [
        checkpoint(record, state, validation=validations.get((record.trial_id, record.steps)))
        for record in records
        if record.experiment_id in state.experiments
    ]


async def validations_at(call: UserCall, at: Iterable[Place]) -> dict[Place, Report]:
    """The validations at some steps of trials."""
    places = set(at)
    validations: dict[Place, Report] = {}
    async for rows in call.peers.reports(sorted({id for id, _ in places}), VALIDATION, archived=False):
        # No others: a trial may have validated a hundred thousand times.
        by_place = {(row.trial_id, row.steps_completed): row for row in rows}
        validations.update({place: row for place, row in by_place.items() if place in places})
    return validations


@router.get("/checkpoints/{uuid}", ("view", "checkpoint"), **record_schema("checkpoint", records.Checkpoint))
async def get(call: Authenticated, uuid: str) -> Response:
    """One checkpoint with the metrics reported at its step."""
    return call.answer({"checkpoint": await show(call, call.catalogue.checkpoint(uuid))})


async def show(call: UserCall, record: Checkpoint) -> dict[str, Any]:
    """One checkpoint with the metrics that its run reported at its step."""
    # The run that stored it: a later one may have reported other metrics at the same step.
    run = run_of(call.catalogue.state, record)
    training = await report_at(call.peers, record.trial_id, run, "training", record.steps)
    validation = await report_at(call.peers, record.trial_id, run, VALIDATION, record.steps)
    # The experiment may have been deleted meanwhile.
    call.catalogue.experiment(record.experiment_id)
    return checkpoint(record, call.catalogue.state, training=training, validation=validation)


@router.delete("/checkpoints", ("delete", "body"))
async def delete(call: Authenticated, body: CheckpointUuids) -> Response:
    """Delete checkpoints in a task. Model versions and checkpoints that running experiments need are kept."""
    await _delete(call, body.checkpoint_uuids, None)
    return call.answer({})


@router.post("/checkpoints/rm", ("delete", "body"))
async def remove_files(call: Authenticated, body: CheckpointFiles) -> Response:
    """Delete the files that match the globs, in a task. Without globs, only refresh the list of files."""
    await _delete(call, body.checkpoint_uuids, tuple(body.checkpoint_globs))
    return call.answer({})


async def _delete(call: UserCall, uuids: list[str], globs: tuple[str, ...] | None) -> None:
    if not uuids:
        raise invalid("checkpointUuids: name at least one checkpoint")
    command = DeleteCheckpoints(uuids=tuple(uuids), globs=globs, user=call.user.username)
    await call.peers.command(command)


@router.patch("/checkpoints", ("speak", "body"))
async def list_files(call: Authenticated, body: ListedCheckpoints) -> Response:
    """Report the files that a deletion task found. Only such a task may call this."""
    allocation_id = call.session().allocation
    allocation = call.catalogue.state.allocations.get(allocation_id)
    # What remains of the files decides the totals and quotas of others, so no user's word counts.
    if allocation is None or allocation.kind != "CHECKPOINT_GC":
        raise forbidden("only a task that deletes checkpoints may report what is left of them")
    for listed_checkpoint in body.checkpoints:
        command = ListFiles(
            uuid=listed_checkpoint.uuid, resources=listed_checkpoint.resources, task_id=allocation.task_id
        )
        await call.peers.command(command)
    return call.answer({})


@router.post("/checkpoints/{uuid}/metadata", ("edit", "checkpoint"))
async def set_metadata(call: Authenticated, uuid: str, body: CheckpointMetadata) -> Response:
    """Replace the registered metadata. The files are not changed."""
    command = SetMetadata(uuid=uuid, metadata=body.checkpoint.metadata, user=call.user.username)
    await call.peers.command(command)
    return call.answer({"checkpoint": checkpoint(call.catalogue.checkpoint(uuid), call.catalogue.state)})


def _storage_of(call: UserCall, experiment_id: int) -> dict[str, Any]:
    """The checkpoint storage of an experiment, with its keys."""
    owner = call.catalogue.experiment(experiment_id).user
    config = call.catalogue.submission(experiment_id).config
    storage: dict[str, Any] = secrets.unseal_config(config, owner, call.backend.sealer)["checkpoint_storage"]
    return storage


@root.get(
    "/checkpoints/{uuid}", ("view", "checkpoint"), **media_schema("application/gzip", "application/x-tar")
)
async def download(call: Authenticated, uuid: str) -> Response:
    """All files of a checkpoint as a tar archive, compressed unless `Accept` asks for a plain one."""
    record = call.catalogue.checkpoint(uuid)
    # A script may give its checkpoint the cluster's id, under which lie the event files of all experiments.
    if record.state == "DELETED" or uuid == call.backend.settings.cluster_id:
        raise not_found("checkpoint", uuid)
    accepted = call.request.headers.get("accept", "").partition(",")[0].partition(";")[0].strip()
    packed = ARCHIVES.get(accepted, True)
    storage = _storage_of(call, record.experiment_id)
    files = [File(name, size) for name, size in sorted(record.resources.items())]
    downloads, who, backend = call.backend.limits.downloads, call.user.username, call.backend
    # The place is held until the last byte, and released here only if the answer never begins.
    await downloads.admission.acquire(who)
    try:
        # A configuration may name any host, and the gateway can reach hosts that its users cannot.
        check_keys(storage, backend.storage, backend.addresses)
        source = opener(storage, uuid, files, backend.roots, backend.addresses)
        await asyncio.get_running_loop().run_in_executor(downloads.threads, _open_first_file, source, files)
    except (FilesMissing, AddressRefused) as error:
        downloads.admission.release(who)
        raise not_found("the files of checkpoint", f"{uuid}: {error}") from None
    # A cancelled request, too: its client has gone while the first file was being opened.
    except BaseException:
        downloads.admission.release(who)
        raise

    async def release() -> None:
        downloads.admission.release(who)

    name = f"{uuid}.tar.gz" if packed else f"{uuid}.tar"
    return Stream(
        archiving.stream(downloads.threads, source, files, record.at, packed=packed),
        call=call,
        passed_on=True,
        release=release,
        media_type="application/gzip" if packed else "application/x-tar",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _open_first_file(source: Files, files: Sequence[File]) -> None:
    """Open the first file, so that a failure is reported before the answer begins."""
    for file in [file for file in files if not file.name.endswith("/")][:1]:
        with source.read(file):
            pass
