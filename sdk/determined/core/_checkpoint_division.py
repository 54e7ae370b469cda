"""Decides which rank stores which files of a sharded checkpoint (core API spec, section 7.2).

All ranks call each function in step and reach the same result.
"""

import functools
import hashlib
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from determined.core._checkpoint_files import METADATA_FILE
from determined.core._checkpoint_merge import Conflicts, merge_metadata, merge_resources
from determined.core._distributed import DistributedContext
from determined.core._outcome import Outcome, values_of_all
from determined.storage import Resources, Selector
from determined.storage.listing import choose, list_directory

_CHUNK_BYTES = 1 << 20


class Share(msgspec.Struct, frozen=True):
    """The files that one rank contributes, as sent to the other ranks."""

    origin: tuple[int, int, int] | None = None
    """Node, device and inode of the directory; None if the rank contributes no files."""
    selected: bool = False
    resources: Resources = {}


class Plan(msgspec.Struct, frozen=True):
    """What this rank stores, and what all ranks store together."""

    mine: Resources
    everything: Resources
    writes_metadata: bool
    """Whether this rank stores the metadata."""


def bring(directory: pathlib.Path | None, selector: Selector | None, node: int) -> Share:
    """List this rank's files, after all ranks have finished writing to shared directories.

    Raises RuntimeError for a selector without a directory.
    """
    if directory is None:
        if selector is not None:
            raise RuntimeError("core_context.checkpoint.upload(): a selector needs a directory, not None")
        return Share()
    resources = list_directory(directory)
    # A leftover from an earlier upload; it is about to be rewritten.
    resources.pop(METADATA_FILE, None)
    status = directory.stat()
    # With the node, because two nodes may have equal device and inode numbers.
    return Share((node, status.st_dev, status.st_ino), selector is not None, choose(resources, selector))


def common_metadata(all_metadata: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the merged metadata of all ranks. Raises RuntimeError if they conflict."""
    merged, conflicts = merge_metadata(all_metadata)
    if conflicts:
        raise RuntimeError(f"refusing to upload with metadata conflicts: {_listed(conflicts)}")
    return merged


def divide(dist: DistributedContext, shares: Sequence[Share], directory: pathlib.Path | None) -> Plan:
    """Decide which rank stores which file.

    Raises RuntimeError if ranks have different files of the same name.
    """
    uploaders = _uploaders(shares)
    if not uploaders:
        raise RuntimeError(
            "core_context.checkpoint.upload(shard=True): no rank gave a directory, all gave None"
        )
    brought = [share.resources if rank in uploaders else {} for rank, share in enumerate(shares)]
    everything, clashes = merge_resources(brought)
    refused = _contradictions(dist, directory, brought, clashes)
    if refused:
        raise RuntimeError(f"refusing to upload with files conflicts: {_listed(refused)}")
    # Of a file that several ranks have, the lowest of them stores the only copy.
    mine = {
        name: size
        for name, size in brought[dist.rank].items()
        if clashes.get(name, [dist.rank])[0] == dist.rank
    }
    return Plan(mine, everything, writes_metadata=dist.rank == uploaders[0])


def _uploaders(shares: Sequence[Share]) -> list[int]:
    """Return the ranks that store files: the lowest of those sharing a directory, and all with a selector."""
    origins, uploaders = set(), []
    for rank, share in enumerate(shares):
        if share.origin is None or (share.origin in origins and not share.selected):
            continue
        uploaders.append(rank)
        # A rank with a selector may leave files out, so it does not stand for the others of its directory.
        if not share.selected:
            origins.add(share.origin)
    return uploaders


def _contradictions(
    dist: DistributedContext, directory: pathlib.Path | None, brought: list[Resources], clashes: Conflicts
) -> Conflicts:
    """Return the names whose meaning differs between ranks."""
    refused = {}
    for name, ranks in clashes.items():
        sizes = {brought[rank].get(name) for rank in ranks}
        # None means that the name is a directory on that rank.
        if len(sizes) > 1 or any(name + "/" in brought[rank] for rank in ranks):
            refused[name] = ranks
    alike = sorted(clashes.keys() - refused.keys())
    if not alike:
        return refused
    # Equal sizes do not mean equal contents. Only files of the same name are read again for that.
    mine = [name for name in alike if dist.rank in clashes[name]]
    digests = values_of_all(dist, Outcome(functools.partial(_digests, directory, mine)))
    for name in alike:
        if len({digests[rank][name] for rank in clashes[name]}) > 1:
            refused[name] = clashes[name]
    return refused


def _digests(directory: pathlib.Path | None, names: list[str]) -> dict[str, bytes]:
    return {name: _digest(os.path.join(directory or "", name)) for name in names}


def _digest(path: str) -> bytes:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.digest()


def _listed(conflicts: Conflicts) -> str:
    return "".join(
        f"\n    {name}: ranks {', '.join(map(str, ranks))}" for name, ranks in sorted(conflicts.items())
    )
