"""The web UI below `/det/`, or a plain status page if it was not built (REST spec, section 8)."""

from __future__ import annotations

import asyncio
import gzip
import mimetypes
import re
from functools import lru_cache
from pathlib import Path

from starlette.responses import HTMLResponse, RedirectResponse, Response

from det_contracts.problems import Refused, not_found
from services.rest_requests.api_call import Anybody, ApiCall, Authenticated
from services.rest_routes.pages import status_page
from services.web.routes import Routes

root = Routes()
BUILT = Path(__file__).parent / "static" / "webui"
HEADERS = {
    "Cache-Control": "no-store",
    "X-Frame-Options": "DENY",
}
# Chart code sets inline styles. Scripts are only allowed from this origin.
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
CACHE_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_NOT_REFUSED = r"(?!\s*;\s*q=0(\.0*)?\s*(,|$))"
_NAME = re.compile(r"\w[\w.-]*")
UNPREFIXED_PATHS = (
    "dashboard",
    "experiments",
    "projects",
    "trials",
    "models",
    "jobs",
    "clusters",
    "login",
    "settings",
)


async def _live_fragment(call: ApiCall) -> str:
    state, visibility = call.catalogue.state, call.visibility
    open_ids = [experiment.id for experiment in state.experiments.values() if experiment.ended_at is None]
    reasons = call.backend.health.report(call.catalogue.position)["reasons"]
    problems = [f"{reason['message']}, since {reason['since']}" for reason in reasons]
    return status_page.fragment(state, visibility, await call.peers.progress(open_ids), problems)


@root.get("/det/live", ("logged_in", "cluster"), include_in_schema=False)
async def live(call: Authenticated) -> Response:
    """The part of the status page that changes."""
    return HTMLResponse(await _live_fragment(call), headers=HEADERS)


@root.get("/det/assets/{name}", ("anybody", "cluster"), include_in_schema=False)
async def asset(call: Anybody, name: str) -> Response:
    """A file of the web UI. Its name contains a digest of its content, so it may be cached forever."""
    if _NAME.fullmatch(name) is None:
        raise not_found("asset", name)
    try:
        # In a thread, as all files of pages: one that is not in the host's memory may come slowly.
        content, encoding = await asyncio.to_thread(_asset, BUILT / "assets" / name, _best_encoding(call))
    except OSError:
        raise not_found("asset", name) from None
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    packed = {"Content-Encoding": encoding} if encoding else {}
    return Response(content, media_type=kind, headers={**CACHE_FOREVER, **packed, "Vary": "Accept-Encoding"})


def _best_encoding(call: ApiCall) -> str:
    """The best encoding that both sides support: `br`, `gzip` or none."""
    accepted = call.request.headers.get("accept-encoding", "")
    return next(
        (encoding for encoding in ("br", "gzip") if re.search(rf"\b{encoding}\b{_NOT_REFUSED}", accepted)), ""
    )


@lru_cache(maxsize=256)
def _asset(path: Path, encoding_name: str) -> tuple[bytes, str]:
    """An asset's content as sent, and its encoding. The build stores a Brotli file beside each asset."""
    brotli_path = path.with_name(f"{path.name}.br")
    if encoding_name == "br" and brotli_path.exists():
        return brotli_path.read_bytes(), "br"
    content = path.read_bytes()
    # A font is already compressed.
    if not encoding_name or path.suffix == ".woff2":
        return content, ""
    return gzip.compress(content, mtime=0), "gzip"


@root.get("/", ("anybody", "cluster"), include_in_schema=False)
@root.get("/det", ("anybody", "cluster"), include_in_schema=False)
@root.get("/det/{rest:path}", ("anybody", "cluster"), include_in_schema=False)
async def page(call: Anybody) -> Response:
    """The page for every address in the web UI. Its script reads the address."""
    try:
        content = await asyncio.to_thread((BUILT / "index.html").read_text, "utf-8")
    except FileNotFoundError:
        return await _status(call)
    if call.request.url.path == "/":
        return RedirectResponse("/det/dashboard")
    return HTMLResponse(content, headers={**HEADERS, "Content-Security-Policy": POLICY})


async def _status(call: ApiCall) -> Response:
    """The status page. Without a session it has no content, and its script logs in first."""
    try:
        call.session()
        content = await _live_fragment(call)
    except Refused:
        content = ""
    name = call.backend.settings.cluster_name
    return HTMLResponse(status_page.page(name, content), headers=HEADERS)


async def _moved(call: Anybody) -> Response:
    """Redirect addresses without the `/det` prefix, as people type them."""
    url = call.request.url
    return RedirectResponse(f"/det{url.path}" + (f"?{url.query}" if url.query else ""))


for _place in UNPREFIXED_PATHS:
    for _path in (f"/{_place}", f"/{_place}/{{rest:path}}"):
        root.add_api_route(_path, _moved, ("anybody", "cluster"), methods=["GET"], include_in_schema=False)
