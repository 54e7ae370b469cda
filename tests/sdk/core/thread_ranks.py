"""Several ranks as threads of one process, for what contexts do with collectives."""

import threading
from collections.abc import Callable
from typing import Any

from determined.core import DistributedContext
from determined.core._collectives import Group

_PATIENCE_S = 60


class _Meeting:
    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.values: list[Any] = [None] * size


class _ThreadGroup:
    def __init__(self, meeting: _Meeting, rank: int) -> None:
        self._meeting, self._rank = meeting, rank

    def allgather(self, value: Any) -> list[Any]:
        self._meeting.values[self._rank] = value
        self._meeting.barrier.wait(_PATIENCE_S)
        values = list(self._meeting.values)
        self._meeting.barrier.wait(_PATIENCE_S)
        return values

    def gather(self, value: Any) -> list[Any] | None:
        values = self.allgather(value)
        return values if self._rank == 0 else None

    def broadcast(self, value: Any) -> Any:
        return self.allgather(value)[0]

    def close(self) -> None:
        pass


class _ThreadRank(DistributedContext):
    def __init__(self, rank: int, size: int, meetings: tuple[_Meeting, _Meeting]) -> None:
        self._meetings = meetings
        super().__init__(rank=rank, size=size, local_rank=rank, local_size=size, cross_rank=0, cross_size=1)

    def _join(self, *_: Any) -> tuple[Group, Group]:
        everybody, node = self._meetings
        return _ThreadGroup(everybody, self.rank), _ThreadGroup(node, self.rank)


def run_ranks(size: int, body: Callable[[DistributedContext], Any]) -> list[Any]:
    """Run `body(dist)` on all ranks at once; return by rank what each gave or raised."""
    meetings = (_Meeting(size), _Meeting(size))
    outcomes: list[Any] = [None] * size

    def run_rank(rank: int) -> None:
        try:
            outcomes[rank] = body(_ThreadRank(rank, size, meetings))
        except Exception as e:
            outcomes[rank] = e

    threads = [threading.Thread(target=run_rank, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * _PATIENCE_S)
        assert not thread.is_alive(), "a rank hangs"
    return outcomes
