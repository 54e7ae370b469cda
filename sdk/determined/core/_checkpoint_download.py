"""One download per node, shared by its ranks (core API spec, section 7.1).

Selectors stay in the process that owns them: only names travel between ranks. Errors travel too, so
that a rank whose chief fails raises instead of waiting.
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
    """Run the action on the local chief; every rank of the node gets its value or raises its error."""
    outcome = Outcome(action) if dist.local_rank == 0 else None
    shared: Outcome[_T] = dist.broadcast_local(outcome)
    return shared.get()


def _wanted_by_anyone(
    storage: StorageManager, dist: DistributedContext, storage_id: str, selector: Selector | None
) -> Callable[[], Selector | None]:
    """Agree on what to fetch; the local chief calls the result, which gives the selector of all or raises."""
    # Whether anyone filters is decided over all nodes, so that all take the same number of steps.
    if not any(dist.allgather(selector is not None)):
        return lambda: None
    names = _by_local_chief(dist, lambda: list(storage.list_resources(storage_id)))
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
    """Fetch into `dst` once per node whatever any rank of the node wants; all ranks call."""
    combined = _wanted_by_anyone(storage, dist, storage_id, selector)
    _by_local_chief(dist, lambda: storage.download(storage_id, dst, combined()))


@contextlib.contextmanager
def restore_shared(
    storage: StorageManager, dist: DistributedContext, storage_id: str, selector: Selector | None
) -> Iterator[pathlib.Path]:
    """Give all ranks of a node the same directory until the slowest leaves the `with`; all ranks call."""
    combined = _wanted_by_anyone(storage, dist, storage_id, selector)
    with contextlib.ExitStack() as stack:
        path = _by_local_chief(
            dist, lambda: stack.enter_context(storage.restore_path(storage_id, combined()))
        )
        try:
            yield path
        finally:
            dist.gather_local(None)
