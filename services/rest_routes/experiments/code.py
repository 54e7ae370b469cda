"""The code submitted with an experiment (REST spec, sections 3 and 8)."""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from typing import IO, Any, BinaryIO

import msgspec
from starlette.responses import Response

from det_contracts.context import Context
from det_contracts.problems import not_found
from services.kit.blobs import BlobStore
from services.kit.job import Job
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import FilePath
from services.rest_requests.streaming import Stream
from services.rest_routes.present.answers import media_schema
from services.submission import heavy
from services.submission.jobs import ONE_FILE, TREE
from services.web.routes import Routes

router = Routes()
root = Routes()
MAX_NAME_LENGTH = 50
CHUNK_BYTES = 3 << 16
"""A multiple of 3, so that the base64 of each chunk has no padding."""
SMALL_BYTES = 64 << 10
"""Size up to which a context, of at most a few thousand files, is read in a thread."""
IN_PROCESS = {TREE: heavy.tree, ONE_FILE: heavy.one_file}


def _context(call: UserCall, experiment_id: int) -> Context:
    context: Context | None = call.catalogue.submission(experiment_id).context
    if context is None:
        raise not_found("model definition of experiment", experiment_id)
    return context


@router.get("/experiments/{experiment_id}/model_def", ("view", "experiment"))
async def model_def(call: Authenticated, experiment_id: int) -> Response:
    """The submitted code, as a tar.gz in base64."""
    return await _download(call, _context(call, experiment_id), _as_json, media_type="application/json")


@root.get(
    "/experiments/{experiment_id}/model_def", ("view", "experiment"), **media_schema("application/x-gtar")
)
async def download(call: Authenticated, experiment_id: int) -> Response:
    """The submitted code, as a tar.gz file."""
    context = _context(call, experiment_id)
    # A name may hold quotes and line breaks, with which a user could add headers to others' answers.
    name = re.sub(r"[^a-zA-Z0-9_-]+", "_", call.catalogue.experiment(experiment_id).name)[:MAX_NAME_LENGTH]
    headers = {
        "Content-Disposition": f'attachment; filename="exp{experiment_id}_{name}_model_def.tar.gz"',
        "Content-Length": str(context.size_bytes),
    }
    return await _download(call, context, _chunks, media_type="application/x-gtar", headers=headers)


async def _download(
    call: UserCall,
    context: Context,
    content: Callable[[Executor, BinaryIO], AsyncIterator[bytes]],
    **more: Any,
) -> Response:
    """Stream a context. It holds one place to its end: an answer that has begun can refuse nothing."""
    limits, who, loop = call.backend.limits, call.user.username, asyncio.get_running_loop()
    threads = limits.contexts.threads
    await limits.code_downloads.acquire(who)
    try:
        file = await limits.contexts.run(who, call.backend.blobs.open, context.digest)
    except BaseException:
        limits.code_downloads.release(who)
        raise

    async def release() -> None:
        limits.code_downloads.release(who)
        await loop.run_in_executor(threads, file.close)

    return Stream(content(threads, file), call=call, passed_on=True, release=release, **more)


async def _chunks(
    threads: Executor, file: BinaryIO, encode: Callable[[bytes], bytes] = bytes
) -> AsyncIterator[bytes]:
    def read() -> bytes:
        return encode(file.read(CHUNK_BYTES))

    while chunk := await asyncio.get_running_loop().run_in_executor(threads, read):
        yield chunk


async def _as_json(threads: Executor, file: BinaryIO) -> AsyncIterator[bytes]:
    """A JSON answer of up to 128 MiB, generated in parts so that it is never held in memory as a whole."""
    yield b'{"b64Tgz":"'
    async for chunk in _chunks(threads, file, base64.b64encode):
        yield chunk
    yield b'"}'


@router.get("/experiments/{experiment_id}/file_tree", ("view", "experiment"))
async def file_tree(call: Authenticated, experiment_id: int) -> Response:
    """All files and directories, nested."""
    tree = await _run_job(call, _context(call, experiment_id), TREE, None)
    return call.answer({"files": msgspec.Raw(tree)})


@router.post("/experiments/{experiment_id}/file", ("view", "experiment"), reads=True)
async def file(call: Authenticated, experiment_id: int, body: FilePath) -> Response:
    """One file, in base64."""
    context = _context(call, experiment_id)
    content = await _run_job(call, context, ONE_FILE, body.path.removeprefix("./"))
    return call.answer({"file": base64.b64encode(content).decode()})


async def _run_job(call: UserCall, context: Context, job: Job, argument: Any) -> bytes:
    """Run a job on a context, in a thread if it is small and in another process if it is large."""
    contexts, who = call.backend.limits.contexts, call.user.username
    # A file, because the job may run in another process, to which only a descriptor is passed.
    with tempfile.TemporaryFile() as copy:
        await contexts.run(who, _copy_context, call.backend.blobs, context.digest, copy)
        if context.size_bytes > SMALL_BYTES:
            content: bytes = await call.backend.offload.run(who, job, argument, [copy.fileno()])
            return content
        return await contexts.run(who, IN_PROCESS[job], argument, copy.fileno())


def _copy_context(blobs: BlobStore, digest: str, target: IO[bytes]) -> None:
    with blobs.open(digest) as source:
        shutil.copyfileobj(source, target, 1 << 20)
    target.flush()
