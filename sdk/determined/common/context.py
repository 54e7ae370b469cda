"""Packing a directory of code, by the name that client scripts import."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from determined import _absent, context

__path__: list[str] = []
_absent.explain_in(__name__)


def read_legacy_context(
    context_root: Path | None, includes: Iterable[Path] = (), limit: int = context.LIMIT_BYTES
) -> list[dict[str, Any]]:
    """The files of a directory, and of `includes` under their own names, as the master takes them.

    Raises `determined.context.ContextError`, a ValueError, beyond `limit` bytes.
    """
    return context.pack(context_root, list(includes), limit=limit)
