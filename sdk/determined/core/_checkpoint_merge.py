"""Merges the shards of a checkpoint (core API spec, section 7.2)."""

from collections.abc import Mapping, Sequence
from typing import Any

from determined.storage import Resources

Conflicts = dict[str, list[int]]


def merge_resources(all_resources: Sequence[Resources]) -> tuple[Resources, Conflicts]:
    """Return the union of all ranks' files, and for each conflicting name the ranks that have it.

    Directories may coincide. A file must not coincide with another rank's file or directory.
    """
    merged: Resources = {}
    ranks: Conflicts = {}
    files = set()
    for rank, resources in enumerate(all_resources):
        for name, size in resources.items():
            merged.setdefault(name, size)
            ranks.setdefault(name.rstrip("/"), []).append(rank)
            if not name.endswith("/"):
                files.add(name)
    return merged, {name: who for name, who in ranks.items() if name in files and len(who) > 1}


def merge_metadata(all_metadata: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], Conflicts]:
    """Return the metadata of all ranks merged key by key, and for each conflicting path the ranks involved.

    The first value wins. Paths look like `/outer/inner`.
    """
    merged: dict[str, Any] = {}
    owners: dict[str, int] = {}
    conflicts: Conflicts = {}
    for rank, metadata in enumerate(all_metadata):
        _merge_into(merged, metadata, "", rank, owners, conflicts)
    return merged, conflicts


def _merge_into(
    merged: dict[str, Any],
    source: Mapping[str, Any],
    prefix: str,
    rank: int,
    owners: dict[str, int],
    conflicts: Conflicts,
) -> None:
    for key, value in source.items():
        path = f"{prefix}/{key}"
        if key not in merged:
            owners[path] = rank
            # A new dict: merging into the given one would change what the script passed.
            merged[key] = {} if isinstance(value, Mapping) else value
        if isinstance(value, Mapping) and isinstance(merged[key], dict):
            _merge_into(merged[key], value, path, rank, owners, conflicts)
        elif merged[key] != value:
            conflicts.setdefault(path, [owners[path]]).append(rank)
