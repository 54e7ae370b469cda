"""Selects the method that a configuration asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.searcher.methods.adaptive_asha import Tournament, adaptive_asha
from services.searcher.methods.asha import AshaSearch
from services.searcher.methods.custom import CustomSearch
from services.searcher.methods.grid import GridSearch
from services.searcher.methods.pbt import PbtSearch, pbt
from services.searcher.methods.protocol import MethodError
from services.searcher.methods.random import RandomSearch
from services.searcher.methods.tpe import TpeSearch, tpe

VERSIONS = {
    "custom": 1,
    "single": 1,
    "random": 1,
    "grid": 1,
    "async_halving": 1,
    "adaptive_asha": 1,
    "tpe": 1,
    "pbt": 1,
}
"""The newest version of each method's decisions. Searches that began with an older version keep it."""

AnyMethod = CustomSearch | RandomSearch | GridSearch | AshaSearch | Tournament | TpeSearch | PbtSearch


class UnknownVersion(Exception):
    """A search began with a method version that only later releases have; the text says what to do."""


def newest_version(searcher: Mapping[str, Any]) -> int:
    """The version with which a search of this configuration begins today."""
    return VERSIONS.get(searcher["name"], 1)


def choose(
    searcher: Mapping[str, Any], space: dict[str, Any], smaller_is_better: bool, version: int
) -> AnyMethod:
    """Return the method before its start, in the given version.

    Raises `MethodError` for an unknown name and `UnknownVersion` for a version of a later release.
    """
    name = searcher["name"]
    if version > newest_version(searcher):
        raise UnknownVersion(
            f"a search began with version {version} of the method '{name}', and this release has version "
            f"{newest_version(searcher)}: run the searcher of the release that began it, or of a later one"
        )
    if name == "custom":
        return CustomSearch()
    length = parse_length(searcher["max_length"])
    match name:
        case "single":
            return RandomSearch(space, length, 1, 1, False)
        case "random":
            limits = searcher["max_trials"], searcher["max_concurrent_trials"]
            return RandomSearch(space, length, *limits, True)
        case "grid":
            return GridSearch.of_space(space, length, searcher["max_concurrent_trials"])
        case "async_halving":
            return AshaSearch.bracket(
                space,
                num_rungs=searcher["num_rungs"],
                max_length=length,
                max_trials=searcher["max_trials"],
                divisor=searcher["divisor"],
                max_concurrent=searcher["max_concurrent_trials"],
                stop_once=searcher["stop_once"],
                smaller_is_better=smaller_is_better,
            )
        case "adaptive_asha":
            return adaptive_asha(space, searcher, length, smaller_is_better)
        case "tpe":
            return tpe(space, searcher, length, smaller_is_better)
        case "pbt":
            return pbt(space, searcher, length, smaller_is_better)
        case _:
            raise MethodError(f"unknown searcher '{name}'")


def parse_length(value: Any) -> int:
    """The number of a length, with or without a unit."""
    if isinstance(value, Mapping):
        value = next(count for count in value.values() if count is not None)
    length = int(value)
    if length < 1:
        raise MethodError(f"max_length must be at least 1, not {length}")
    return length
