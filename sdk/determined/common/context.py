"""Packs a directory of code, under the name that client scripts import."""

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
    """Pack the files of a directory, and of `includes` under their own names, in the form the master accepts.

    Raises `determined.context.ContextError`, a ValueError, if they exceed `limit` bytes.
    """
    return context.pack(context_root, list(includes), limit=limit)
