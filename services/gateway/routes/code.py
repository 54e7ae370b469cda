"""The code that came with an experiment (REST spec, sections 3 and 8)."""

from __future__ import annotations

import asyncio
import base64
import re
import tarfile
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from det_contracts.context import Context
from det_contracts.problems import invalid, not_found
from services.gateway.present.values import instant
from services.gateway.web.bodies import FilePath
from services.gateway.web.streaming import Stream
from services.gateway.web.visit import Asked, UserVisit

router = APIRouter()
root = APIRouter()
LARGEST_SHOWN_BYTES = 8 << 20
LONGEST_NAME = 50
CHUNK_BYTES = 1 << 18


def _context(visit: UserVisit, experiment_id: int) -> Context:
    context: Context | None = visit.catalogue.submission(experiment_id).context
    if context is None:
        raise not_found("model definition of experiment", experiment_id)
    return context


@router.get("/experiments/{experiment_id}/model_def")
async def model_def(visit: Asked, experiment_id: int) -> Response:
    """The code that was sent, as a tar.gz in base64."""
    archive = await asyncio.to_thread(_read, visit, _context(visit, experiment_id).digest)
    return visit.answer({"b64Tgz": base64.b64encode(archive).decode()})


def _read(visit: UserVisit, digest: str) -> bytes:
    with visit.backend.blobs.open(digest) as file:
        return file.read()


@root.get("/experiments/{experiment_id}/model_def")
async def download(visit: Asked, experiment_id: int) -> Response:
    """The same as a file."""
    context = _context(visit, experiment_id)
    file = await asyncio.to_thread(visit.backend.blobs.open, context.digest)
    name = re.sub(r"[^a-zA-Z0-9_-]+", "_", visit.catalogue.experiment(experiment_id).name)[:LONGEST_NAME]
    headers = {
        "Content-Disposition": f'attachment; filename="exp{experiment_id}_{name}_model_def.tar.gz"',
        "Content-Length": str(context.size_bytes),
    }

    def chunks() -> Any:
        with file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    return Stream(chunks(), media_type="application/x-gtar", headers=headers)


@router.get("/experiments/{experiment_id}/file_tree")
async def file_tree(visit: Asked, experiment_id: int) -> Response:
    """All files and directories, nested."""
    digest = _context(visit, experiment_id).digest
    return visit.answer({"files": await asyncio.to_thread(_tree, visit, digest)})


def _tree(visit: UserVisit, digest: str) -> list[dict[str, Any]]:
    tops: list[dict[str, Any]] = []
    below: dict[str, list[dict[str, Any]]] = {"": tops}
    with visit.backend.blobs.open(digest) as file, tarfile.open(fileobj=file, mode="r:gz") as archive:
        for member in sorted(archive, key=lambda one: one.name):
            parent, _, name = member.name.rpartition("/")
            inner: list[dict[str, Any]] = []
            node = {
                "path": member.name,
                "name": name,
                "modifiedTime": instant(float(member.mtime)),
                "contentLength": member.size,
                "isDir": member.isdir(),
                "contentType": "" if member.isdir() else "text/plain; charset=utf-8",
                "files": inner,
            }
            below.setdefault(parent, tops).append(node)
            below[member.name] = inner
    return tops


@router.post("/experiments/{experiment_id}/file")
async def file(visit: Asked, experiment_id: int, wish: FilePath) -> Response:
    """One file, in base64."""
    digest = _context(visit, experiment_id).digest
    content = await asyncio.to_thread(_one, visit, digest, wish.path.removeprefix("./"))
    return visit.answer({"file": base64.b64encode(content).decode()})


def _one(visit: UserVisit, digest: str, path: str) -> bytes:
    with visit.backend.blobs.open(digest) as file, tarfile.open(fileobj=file, mode="r:gz") as archive:
        for member in archive:
            if member.name == path and member.isfile():
                if member.size > LARGEST_SHOWN_BYTES:
                    raise invalid(f"'{path}' is larger than {LARGEST_SHOWN_BYTES} bytes: download the whole")
                content = archive.extractfile(member)
                if content is not None:
                    return content.read()
    raise not_found("file", path)
