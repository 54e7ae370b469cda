"""What the programs of a local cluster answer: their health pages, and the gateway."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

HEALTH_TIMEOUT_S = 5.0


def count_workers(address: str, authority: Path | None = None) -> int | None:
    """Return the number of workers the gateway knows; None while it does not answer.

    `authority` is the file of the authority that signed its certificate, if it uses TLS.
    """
    try:
        return int(_get(f"{address}/info", authority).get("workers", 0))
    except (OSError, ValueError):
        return None


def _get(url: str, authority: Path | None) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=authority) if authority is not None else None
    with urllib.request.urlopen(url, timeout=2, context=context) as answer:
        body: dict[str, Any] = json.load(answer)
        return body


def health_problems(port: int, timeout_s: float = HEALTH_TIMEOUT_S) -> list[str]:
    """Return the problems that a program reports on its health page, one per line."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=timeout_s):
            return []
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode(errors="replace").splitlines()
    except OSError:
        return [f"does not answer within {timeout_s:.0f} s: it is stopped or hangs"]


def health_port(name: str, ports: dict[str, int]) -> int | None:
    """Return the port of a program's health page."""
    return ports.get("monitor" if name == "broker" else name)
