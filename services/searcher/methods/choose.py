"""Creates the method that a configuration asks for.

There is one table of methods, that of configurations (`det_contracts.expconf.searcher`): the file of a method
here has the method's name.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from det_contracts.expconf.searcher import METHODS
from services.searcher.methods.protocol import Declaration, Method, MethodError, SearchSettings


def _declaration(name: str) -> Declaration:
    module = f"services.searcher.methods.{name}"
    try:
        declaration: Declaration = importlib.import_module(module).METHOD
    except (ModuleNotFoundError, AttributeError) as error:
        raise ImportError(
            f"configurations may ask for the search method '{name}', and {module} declares none "
            f"({error}): write METHOD = Declaration(...) there (CONTRIBUTING.md)"
        ) from error
    return declaration


DECLARATIONS = {name: _declaration(name) for name in METHODS}

if TYPE_CHECKING:
    AnyMethod = Method
else:
    # What is stored is decoded by the union of all states, which only the declarations know.
    AnyMethod = functools.reduce(operator.or_, (declared.state for declared in DECLARATIONS.values()))


class UnknownVersion(Exception):
    """A search began with a method version that only later releases have; the text says what to do."""


def newest_version(searcher: Mapping[str, Any]) -> int:
    """The version with which a search of this configuration begins today."""
    return _declared(searcher).version


def unavailable_reason(searcher: Mapping[str, Any]) -> str:
    """Why this installation cannot run a new search of this kind; "" if it can."""
    return _declared(searcher).unavailable_reason()


def choose(
    searcher: Mapping[str, Any], space: dict[str, Any], smaller_is_better: bool, version: int
) -> AnyMethod:
    """Return the method before its start, in the given version.

    Raises `MethodError` for an unknown name and `UnknownVersion` for a version of a later release.
    """
    if version > newest_version(searcher):
        raise UnknownVersion(
            f"a search began with version {version} of the method '{searcher['name']}', and this release "
            f"has version {newest_version(searcher)}: run the searcher of the release that began it, or of a "
            "later one"
        )
    return _declared(searcher).create(SearchSettings(searcher, space, smaller_is_better, version))


def _declared(searcher: Mapping[str, Any]) -> Declaration:
    name = searcher["name"]
    if name not in DECLARATIONS:
        raise MethodError(
            f"unknown searcher '{name}': if a later release began the search, run the searcher of that "
            "release"
        )
    return DECLARATIONS[name]
