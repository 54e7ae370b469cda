"""Converts the output of a YAML or JSON parser to data that JSON can represent."""

from __future__ import annotations

import math
from typing import Any

from det_contracts.expconf.faults import SANITY, ConfigErrors, Faults

MAX_DEPTH = 64
MAX_VALUES = 1_000_000


def to_json_data(value: object, at: str, faults: Faults) -> Any:
    """Return a copy made of maps with string keys, lists and JSON scalars.

    Other values are reported as faults.

    Integer keys become strings, as in a YAML to JSON conversion. Raises `ConfigErrors` immediately for a
    value beyond `MAX_DEPTH` or `MAX_VALUES`.
    """
    return _Copy(faults).copy(value, at, 0)


class _Copy:
    """One copy in progress. YAML anchors can make a short text a value without end, hence the limits."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.values = 0

    def copy(self, value: object, at: str, depth: int) -> Any:
        self.values += 1
        if depth > MAX_DEPTH:
            raise ConfigErrors(SANITY, (f"{at}: is nested more than {MAX_DEPTH} levels deep",))
        if self.values > MAX_VALUES:
            raise ConfigErrors(SANITY, (f"{at}: there are more than {MAX_VALUES} values up to here",))
        if isinstance(value, dict):
            named = [(self._key(key, at), item) for key, item in value.items()]
            return {name: self.copy(item, f"{at}.{name}", depth + 1) for name, item in named}
        if isinstance(value, list):
            return [self.copy(item, f"{at}[{index}]", depth + 1) for index, item in enumerate(value)]
        problem = _find_problem(value)
        if problem:
            self.faults.add(at, problem)
        return None if problem else value

    def _key(self, key: object, at: str) -> str:
        if not isinstance(key, (str, int)) or isinstance(key, bool):
            self.faults.add(at, f"the key {key!r} must be a string, write it in quotes")
        return str(key)


def _find_problem(value: object) -> str:
    if value is None or isinstance(value, (bool, str)):
        return ""
    if isinstance(value, int):
        return "" if -(2**63) <= value < 2**64 else "does not fit in 64 bits"
    if isinstance(value, float):
        return "" if math.isfinite(value) else "must be a finite number"
    return f"a {type(value).__name__} cannot be kept in a configuration, write it as a string in quotes"
