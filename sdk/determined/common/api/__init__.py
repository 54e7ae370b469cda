"""Names that existing client scripts import from here. They are loaded on first access."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

__all__ = [
    "Authentication",
    "Session",
    "authentication",
    "browser_open",
    "certs",
    "delete",
    "do_request",
    "errors",
    "get",
    "make_url",
    "parse_master_address",
    "patch",
    "post",
    "put",
    "request",
    "salt_and_hash",
]


if TYPE_CHECKING:
    from determined.common.api import authentication, certs, errors, request
    from determined.common.api._session import Session
    from determined.common.api.authentication import Authentication, salt_and_hash
    from determined.common.api.request import (
        browser_open,
        delete,
        do_request,
        get,
        make_url,
        parse_master_address,
        patch,
        post,
        put,
    )
else:
    # Hidden from type checkers, which would otherwise accept any attribute name.
    def __getattr__(name: str) -> Any:
        if name in _HOME:
            return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        raise _absent.attribute(__name__, name)
