"""The code submitted with an experiment (REST spec, sections 3 and 8)."""

from __future__ import annotations

import base64
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from typing import IO, Any, BinaryIO

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.context import Context
from det_contracts.problems import not_found
from services.gateway.http.bodies import FilePath
from services.gateway.http.streaming import Stream
from services.gateway.http.visit import Authenticated, UserVisit
from services.gateway.submit import heavy
from services.gateway.submit.jobs import ONE_FILE, TREE
from services.kit.blobs import BlobStore
from services.kit.job import Job

router = APIRouter()
root = APIRouter()
MAX_NAME_LENGTH = 50
CHUNK_BYTES = 3 << 18
"""A multiple of 3, so that the base64 of each chunk has no padding."""
SMALL_BYTES = 64 << 10
"""Size up to which a context, of at most a few thousand files, is read in a thread."""
IN_PROCESS = {TREE: heavy.tree, ONE_FILE: heavy.one_file}


def _context(visit: UserVisit, experiment_id: int) -> Context:
    context: Context | None = visit.catalogue.submission(experiment_id).context
    if context is None:
        raise not_found("model definition of experiment", experiment_id)
    return context


@router.get("/experiments/{experiment_id}/model_def")
async def model_def(visit: Authenticated, experiment_id: int) -> Response:
    """The submitted code, as a tar.gz in base64."""
    file = await _open(visit, _context(visit, experiment_id))
    return _stream_file(visit, file, _as_json(visit, file), media_type="application/json")


@root.get("/experiments/{experiment_id}/model_def")
async def download(visit: Authenticated, experiment_id: int) -> Response:
    """The submitted code, as a tar.gz file."""
    context = _context(visit, experiment_id)
    name = re.sub(r"[^a-zA-Z0-9_-]+", "_", visit.catalogue.experiment(experiment_id).name)[:MAX_NAME_LENGTH]
    headers = {
        "Content-Disposition": f'attachment; filename="exp{experiment_id}_{name}_model_def.tar.gz"',
        "Content-Length": str(context.size_bytes),
    }
    file = await _open(visit, context)
    return _stream_file(visit, file, _chunks(visit, file), media_type="application/x-gtar", headers=headers)


async def _open(visit: UserVisit, context: Context) -> BinaryIO:
    return await visit.backend.limits.contexts.run(
        visit.user.username, visit.backend.blobs.open, context.digest
    )


def _stream_file(visit: UserVisit, file: BinaryIO, content: AsyncIterator[bytes], **more: Any) -> Response:
    async def release() -> None:
        await visit.backend.limits.contexts.run(visit.user.username, file.close)

    return Stream(content, visit=visit, release=release, **more)


async def _chunks(visit: UserVisit, file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := await visit.backend.limits.contexts.run(visit.user.username, file.read, CHUNK_BYTES):
        yield chunk


async def _as_json(visit: UserVisit, file: BinaryIO) -> AsyncIterator[bytes]:
    """A JSON answer of up to 128 MiB, generated in parts so that it is never held in memory as a whole."""
    yield b'{"b64Tgz":"'
    async for chunk in _chunks(visit, file):
        yield base64.b64encode(chunk)
    yield b'"}'


@router.get("/experiments/{experiment_id}/file_tree")
async def file_tree(visit: Authenticated, experiment_id: int) -> Response:
    """All files and directories, nested."""
    found = await _run_job(visit, _context(visit, experiment_id), TREE, None)
    return visit.answer({"files": msgspec.Raw(found)})


@router.post("/experiments/{experiment_id}/file")
async def file(visit: Authenticated, experiment_id: int, wish: FilePath) -> Response:
    """One file, in base64."""
    context = _context(visit, experiment_id)
    content = await _run_job(visit, context, ONE_FILE, wish.path.removeprefix("./"))
    return visit.answer({"file": base64.b64encode(content).decode()})


async def _run_job(visit: UserVisit, context: Context, job: Job, argument: Any) -> bytes:
    """Run a job on a context, in a thread if it is small and in another process if it is large."""
    contexts, who = visit.backend.limits.contexts, visit.user.username
    with tempfile.TemporaryFile() as copy:
        await contexts.run(who, _copy_context, visit.backend.blobs, context.digest, copy)
        if context.size_bytes > SMALL_BYTES:
            found: bytes = await visit.backend.offload.run(who, job, argument, [copy.fileno()])
            return found
        return await contexts.run(who, IN_PROCESS[job], argument, copy.fileno())


def _copy_context(blobs: BlobStore, digest: str, target: IO[bytes]) -> None:
    with blobs.open(digest) as source:
        shutil.copyfileobj(source, target, 1 << 20)
    target.flush()
