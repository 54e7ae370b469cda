"""Names that existing client scripts import from here; they load when they are asked for."""

from __future__ import annotations

import importlib
from typing import Any

from determined import _absent

_FROM = {
    "_session": ("Session",),
    "authentication": ("Authentication", "salt_and_hash"),
    "request": (
        *("browser_open", "delete", "do_request", "get", "make_url", "parse_master_address"),
        *("patch", "post", "put"),
    ),
}
_HOME = {name: module for module, names in _FROM.items() for name in names}

__all__ = [*sorted(_HOME), "authentication", "certs", "errors", "request"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise _absent.attribute(__name__, name)
