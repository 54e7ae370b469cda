"""Merging of mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(original: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7396): mappings are merged, null removes, anything else replaces."""
    joined = dict(original)
    for name, value in patch.items():
        if isinstance(value, Mapping):
            before = joined.get(name)
            joined[name] = merged(before if isinstance(before, Mapping) else {}, value)
        elif value is None:
            joined.pop(name, None)
        else:
            joined[name] = value
    return joined
