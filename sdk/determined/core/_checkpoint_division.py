"""Who stores what when every rank brings a part of a checkpoint (core API spec, section 7.2).

Each function is called by all ranks in step, and decides the same on each of them.
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
    """What one rank brings, as the others see it."""

    origin: tuple[int, int, int] | None = None
    """Node, device and inode of the directory; None where the rank brings no files."""
    selected: bool = False
    resources: Resources = {}


class Plan(msgspec.Struct, frozen=True):
    """What this rank stores, and what everybody does together."""

    mine: Resources
    everything: Resources
    writes_metadata: bool
    """Whether this rank is the one that stores the metadata."""


def bring(directory: pathlib.Path | None, selector: Selector | None, node: int) -> Share:
    """Look at this rank's part, once all ranks are done with writing into directories that they share.

    A selector without a directory is a RuntimeError.
    """
    if directory is None:
        if selector is not None:
            raise RuntimeError("core_context.checkpoint.upload(): a selector needs a directory, not None")
        return Share()
    resources = list_directory(directory)
    # What an earlier upload left there is about to be written again.
    resources.pop(METADATA_FILE, None)
    status = directory.stat()
    return Share((node, status.st_dev, status.st_ino), selector is not None, choose(resources, selector))


def common_metadata(all_metadata: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metadata of all ranks merged; RuntimeError where two contradict each other."""
    merged, conflicts = merge_metadata(all_metadata)
    if conflicts:
        raise RuntimeError(f"refusing to upload with metadata conflicts: {_listed(conflicts)}")
    return merged


def divide(dist: DistributedContext, shares: Sequence[Share], directory: pathlib.Path | None) -> Plan:
    """Decide who stores which file; RuntimeError if ranks bring different files of one name."""
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
    mine = {
        name: size
        for name, size in brought[dist.rank].items()
        if clashes.get(name, [dist.rank])[0] == dist.rank
    }
    return Plan(mine, everything, writes_metadata=dist.rank == uploaders[0])


def _uploaders(shares: Sequence[Share]) -> list[int]:
    """The ranks that store files: of those that share a directory the lowest, and all that select."""
    seen, uploaders = set(), []
    for rank, share in enumerate(shares):
        if share.origin is None or (share.origin in seen and not share.selected):
            continue
        uploaders.append(rank)
        if not share.selected:
            seen.add(share.origin)
    return uploaders


def _contradictions(
    dist: DistributedContext, directory: pathlib.Path | None, brought: list[Resources], clashes: Conflicts
) -> Conflicts:
    """The names that do not mean the same on all the ranks that bring them."""
    refused = {}
    for name, ranks in clashes.items():
        sizes = {brought[rank].get(name) for rank in ranks}
        # None: there it is a directory.
        if len(sizes) > 1 or any(name + "/" in brought[rank] for rank in ranks):
            refused[name] = ranks
    alike = sorted(clashes.keys() - refused.keys())
    if not alike:
        return refused
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
