"""Reads long lists from the master page by page."""

from __future__ import annotations

from typing import Any

from determined.transport.rest import Params, Session

PAGE = 200


def read_all(session: Session, path: str, key: str, params: Params | None = None) -> list[Any]:
    """Return all items under `key` of a list endpoint, in the order requested by `params`."""
    items: list[Any] = []
    while True:
        answer = session.get(path, {**(params or {}), "limit": PAGE, "offset": len(items)})
        items += answer[key]
        total = int((answer.get("pagination") or {}).get("total") or 0)
        if not answer[key] or len(items) >= total:
            return items
