"""Makes a task's responses safe to serve under the gateway's own address, whoever wrote them.

The browser gives such a page a unique origin (`Content-Security-Policy: sandbox`): it sees no cookies, cannot
read the web UI or other tasks, and cannot act on behalf of the viewer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable

HOP_BY_HOP_HEADERS = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
    "trailer", "trailers", "transfer-encoding", "upgrade",
}  # fmt: skip
WITHHELD_HEADERS = {
    "authorization", "cookie", "grpc-metadata-x-allocation-token", "host", "content-length", "expect",
    "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "origin", "referer",
}  # fmt: skip
"""A task must not see the viewer's credentials, or it could act in their name."""
STRIPPED_HEADERS = {
    "set-cookie", "set-cookie2", "clear-site-data", "service-worker-allowed", "content-security-policy",
    "content-security-policy-report-only", "strict-transport-security", "public-key-pins", "alt-svc", "nel",
    "report-to", "reporting-endpoints", "referrer-policy", "www-authenticate", "accept-ch", "critical-ch",
    "origin-agent-cluster", "set-login", "use-as-dictionary", "date", "server",
}  # fmt: skip
"""Headers that a browser would apply to the whole origin, and thus to the gateway."""
SANDBOX_PERMISSIONS = ("scripts", "forms", "popups", "downloads", "modals")
"""Adding `same-origin` here would defeat all of this protection."""
ISOLATION_HEADERS = [
    ("content-security-policy", " ".join(["sandbox", *(f"allow-{what}" for what in SANDBOX_PERMISSIONS)])),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
]
CORS_HEADERS = [
    ("access-control-allow-origin", "*"),
    ("access-control-allow-methods", "*"),
    ("access-control-allow-headers", "*"),
    ("access-control-max-age", "600"),
]
"""To the page, its own server is a different origin; the ticket in the address is what permits its
requests."""
# No further than the next tag, so that many that never end are not each read to the end of the page.
HEAD = re.compile(rb"<head(\s[^<>]*)?>", re.IGNORECASE)
MAX_HEAD_SEARCH_BYTES = 64 << 10
Headers = list[tuple[str, str]]
POLYFILLS = b"""<script>(() => {
  for (const name of ["localStorage", "sessionStorage"]) {
    const kept = new Map();
    const own = {
      getItem: (key) => kept.get(String(key)) ?? null,
      setItem: (key, value) => void kept.set(String(key), String(value)),
      removeItem: (key) => void kept.delete(String(key)),
      clear: () => kept.clear(),
      key: (n) => [...kept.keys()][n] ?? null,
      get length() { return kept.size; },
    };
    Object.defineProperty(window, name, { value: own });
  }
  Object.defineProperty(document, "cookie", { get: () => "", set: () => {} });
  for (const name of ["pushState", "replaceState"]) {
    const own = History.prototype[name];
    History.prototype[name] = function (...given) {
      try { own.apply(this, given); } catch { /* it has no address that could be another one */ }
    };
  }
  const Own = window.Worker;
  window.Worker = class extends Own {
    constructor(address, options) {
      const whole = JSON.stringify(new URL(address, document.baseURI).href);
      const text = options?.type === "module" ? `import ${whole};` : `importScripts(${whole});`;
      super(URL.createObjectURL(new Blob([text], { type: "text/javascript" })), options);
    }
  };
})();</script>"""
"""A page with an opaque origin has no storage, cookies or worker scripts, which many pages require. These
stand-ins last while the page is open."""


def request_headers(headers: Iterable[tuple[str, str]], *, page: bool) -> Headers:
    """Return the headers of a request that a task may see."""
    forwarded = _end_to_end_headers(headers, WITHHELD_HEADERS)
    if page and any(name == "accept" and "text/html" in value for name, value in forwarded):
        # A compressed page could not be rewritten here.
        forwarded = [header for header in forwarded if header[0] != "accept-encoding"] + [
            ("accept-encoding", "identity")
        ]
    return forwarded


def response_headers(headers: Iterable[tuple[str, str]], *, page: bool) -> Headers:
    """Return the headers of an answer that a browser may see."""
    unwanted = set(STRIPPED_HEADERS)
    if page:
        # The page becomes longer by what is inserted.
        unwanted |= {name for name, _ in CORS_HEADERS} | {"content-length"}
    # A task that allowed any origin with credentials would open the gateway's own address to all pages.
    forwarded = [
        header
        for header in _end_to_end_headers(headers, unwanted)
        if not header[0].startswith("access-control-")
    ]
    return forwarded + ISOLATION_HEADERS + (CORS_HEADERS if page else [])


def _end_to_end_headers(headers: Iterable[tuple[str, str]], unwanted: set[str]) -> Headers:
    plain = [(name.lower(), value) for name, value in headers]
    # A sender may name further headers that concern only this connection (RFC 9110, 7.6.1).
    listed = ",".join(value for name, value in plain if name == "connection")
    dropped = HOP_BY_HOP_HEADERS | {word.strip().lower() for word in listed.split(",")} | unwanted
    return [(name, value) for name, value in plain if name not in dropped]


def is_page(headers: Headers) -> bool:
    """Whether an answer is uncompressed HTML."""
    by_name = dict(headers)
    readable = by_name.get("content-encoding", "identity") == "identity"
    return by_name.get("content-type", "").startswith("text/html") and readable


async def rewrite_links(content: AsyncIterator[bytes], own: bytes, where: bytes) -> AsyncIterator[bytes]:
    """Rewrite addresses below `own` in a page to `where`, so that its requests carry the ticket."""
    rest = b""
    async for chunk in content:
        text = (rest + chunk).replace(own, where)
        # The end may be the beginning of a match that continues in the next chunk.
        rest = next((own[:size] for size in range(len(own) - 1, 0, -1) if text.endswith(own[:size])), b"")
        yield text[: len(text) - len(rest)]
    yield rest


async def insert_polyfills(content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Insert the stand-ins at the beginning of a page's head."""
    buffer: bytes | None = b""
    searched = 0
    async for chunk in content:
        if buffer is None:
            yield chunk
            continue
        buffer += chunk
        head = HEAD.search(buffer, searched)
        if head is None and len(buffer) < MAX_HEAD_SEARCH_BYTES:
            # The last tag may continue in the next chunk; what is before it is not searched again.
            searched = max(searched, buffer.rfind(b"<"))
            continue
        at = head.end() if head else 0
        yield buffer[:at] + (POLYFILLS if head else b"") + buffer[at:]
        buffer = None
    if buffer:
        yield buffer
