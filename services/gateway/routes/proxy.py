"""HTTP to tasks: what a browser asks below `/proxy/<task id>/` is asked of the task (REST, section 8)."""

from __future__ import annotations

import httpx
from fastapi import APIRouter
from starlette.responses import Response

from det_contracts import ids
from det_contracts.problems import not_found, unavailable
from services.gateway.domain import OwnTask
from services.gateway.web.streaming import Stream
from services.gateway.web.visit import Asked, UserVisit

root = APIRouter()
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
OF_ONE_HOP = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailers",
    "transfer-encoding", "upgrade", "host", "content-length",
}  # fmt: skip
OURS = {"authorization", "cookie"}
"""A task must not see who asks, or it could act in their name."""
TIMEOUT = httpx.Timeout(60.0, connect=5.0)


@root.api_route("/proxy/{task_id}", methods=METHODS, include_in_schema=False)
@root.api_route("/proxy/{task_id}/{rest:path}", methods=METHODS, include_in_schema=False)
async def forward(visit: Asked, task_id: str, rest: str = "") -> Response:
    """Ask the task, and hand on what it answers."""
    address = _address(visit, task_id)
    request = visit.request
    headers = [
        (name, value)
        for name, value in request.headers.items()
        if name not in OF_ONE_HOP and name not in OURS
    ]
    client = httpx.AsyncClient(timeout=TIMEOUT, trust_env=False)
    # As it was sent: a slash at its end means something to the task.
    path = request.scope["raw_path"].partition(b"?")[0]
    url = httpx.URL(f"http://{address}").copy_with(raw_path=_target(path, request.url.query))
    asked = client.build_request(request.method, url, headers=headers, content=await request.body())
    try:
        answer = await client.send(asked, stream=True)
    except httpx.HTTPError as error:
        await client.aclose()
        raise unavailable(f"task {task_id} does not answer at {address}: {error!r}") from None
    except BaseException:
        await client.aclose()
        raise
    kept = {name: value for name, value in answer.headers.items() if name.lower() not in OF_ONE_HOP}

    async def release() -> None:
        await answer.aclose()
        await client.aclose()

    return Stream(answer.aiter_raw(), status_code=answer.status_code, headers=kept, release=release)


def _target(path: bytes, query: str) -> bytes:
    return path + (b"?" + query.encode() if query else b"")


def _address(visit: UserVisit, task_id: str) -> str:
    state = visit.catalogue.state
    known: OwnTask | None = state.tasks.get(task_id)
    if known is None or ids.allocation_id(task_id, 1) not in state.live:
        raise not_found("live task", task_id)
    if not known.address:
        raise unavailable(f"task {task_id} does not answer HTTP yet; try again")
    return known.address
