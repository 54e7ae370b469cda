"""Shared downloads, one per node (core API spec, section 7.1).

Selectors stay in the process that owns them; only file names are exchanged between ranks. Errors are
exchanged too, so that a rank whose chief fails raises instead of waiting.
"""

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from determined.core._distributed import DistributedContext
from determined.core._outcome import Outcome
from determined.storage import Selector, StorageManager

_T = TypeVar("_T")


def _by_local_chief(dist: DistributedContext, action: Callable[[], _T]) -> _T:
    """Run the action on the local chief. Every rank of the node gets its value or raises its error."""
    outcome = Outcome(action) if dist.local_rank == 0 else None
    shared: Outcome[_T] = dist.broadcast_local(outcome)
    return shared.get()


def _wanted_by_anyone(
    storage: StorageManager, dist: DistributedContext, storage_id: str, selector: Selector | None
) -> Callable[[], Selector | None]:
    """Agree on what to download.

    The result is a function for the local chief that returns the joint selector.
    """
    # All nodes must take the same number of steps, so whether any rank filters is decided over all nodes.
    if not any(dist.allgather(selector is not None)):
        return lambda: None
    names = _by_local_chief(dist, lambda: list(storage.list_resources(storage_id)))
    # As an outcome, since a selector is the script's own code and may fail on one rank only.
    mine = Outcome(lambda: {name for name in names if selector is None or selector(name)})
    everybody = dist.gather_local(mine)

    def combined() -> Selector:
        union = {name for patterns in everybody or [] for name in patterns.get()}
        return union.__contains__

    return combined


def download_shared(
    storage: StorageManager,
    dist: DistributedContext,
    storage_id: str,
    dst: "str | os.PathLike[str]",
    selector: Selector | None,
) -> None:
    """Download to `dst`, once per node, the files that any rank of the node wants. All ranks call this."""
    combined = _wanted_by_anyone(storage, dist, storage_id, selector)
    _by_local_chief(dist, lambda: storage.download(storage_id, dst, combined()))


@contextlib.contextmanager
def restore_shared(
    storage: StorageManager, dist: DistributedContext, storage_id: str, selector: Selector | None
) -> Iterator[pathlib.Path]:
    """Yield the same directory to all ranks of a node until the last one leaves. All ranks call this."""
    combined = _wanted_by_anyone(storage, dist, storage_id, selector)
    with contextlib.ExitStack() as stack:
        path = _by_local_chief(
            dist, lambda: stack.enter_context(storage.restore_path(storage_id, combined()))
        )
        try:
            yield path
        finally:
            # The local chief removes the directory when it leaves the block, so it waits for the others.
            dist.gather_local(None)
