"""The master's address (client spec, section 1)."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

DEFAULT_PORT = 8080
_SCHEME_PORTS = {"http": 80, "https": 443}


def master_url(address: str | None = None) -> str:
    """Return the master's URL, always with scheme and port and without a trailing slash. Keeps a path prefix.

    Without `address`: `DET_MASTER`, else `DET_MASTER_ADDR`, else this host. Raises ValueError for an
    address that is none, TypeError for what is no text.
    """
    if not isinstance(address, str | None):
        raise TypeError(f"the master's address must be a str as HOST:PORT, not {type(address).__name__}")
    master = address or os.environ.get("DET_MASTER") or os.environ.get("DET_MASTER_ADDR") or "localhost"
    has_scheme = "://" in master
    parts = urlsplit(master if has_scheme else f"http://{master}")
    if parts.scheme not in _SCHEME_PORTS or not parts.hostname:
        raise ValueError(f"'{master}' is not a master address; use HOST:PORT or http(s)://HOST:PORT")
    port = _port(parts.netloc, master) or (_SCHEME_PORTS[parts.scheme] if has_scheme else DEFAULT_PORT)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}"


def _port(netloc: str, master: str) -> int | None:
    try:
        return urlsplit(f"//{netloc}").port
    except ValueError:
        raise ValueError(
            f"'{master}' is not a master address: after the last colon comes a port, a number up to 65535"
        ) from None
