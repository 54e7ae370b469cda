"""Reads long lists page by page (client spec, section 3)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from determined.cli.grammar import Arg, arg
from determined.transport.rest import Params, Session

_USUAL, _MANY = 100, 2500


def paging_args(limit: int = 200) -> tuple[Arg, ...]:
    """Return the options `--limit`, `--offset` and `--pages`."""
    return (
        arg("--limit", type=int, default=limit, metavar="N", help=f"objects per page, default {limit}"),
        arg("--offset", type=int, default=0, metavar="N", help="objects to skip at the start"),
        arg("--pages", choices=("1", "all"), default="all", help="read one page or all, default all"),
    )


def read_pages(
    session: Session, path: str, key: str, args: argparse.Namespace, params: Params | None = None
) -> list[Any]:
    """Return the objects under `key` of a list endpoint, as limited by the paging options.

    After a first page of the default size, pages are large. A smaller size is respected, because the user
    chose it.
    """
    return _read(lambda page: session.get(path, {**(params or {}), **page}), key, args)


def post_pages(
    session: Session, path: str, key: str, args: argparse.Namespace, body: dict[str, Any]
) -> list[Any]:
    """The same for a list that is requested with POST."""
    return _read(lambda page: session.post(path, {**body, **page}), key, args)


def _read(ask: Callable[[dict[str, int]], dict[str, Any]], key: str, args: argparse.Namespace) -> list[Any]:
    items: list[Any] = []
    while True:
        offset = args.offset + len(items)
        limit = max(args.limit, _MANY) if items and args.limit >= _USUAL else args.limit
        answer = ask({"limit": limit, "offset": offset})
        page = answer[key]
        items += page
        total = int((answer.get("pagination") or {}).get("total") or 0)
        if args.pages == "1" or not page or args.offset + len(items) >= total:
            return items
