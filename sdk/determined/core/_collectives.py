"""Collective operations, called in step by all ranks of a group (core API spec, section 5)."""

from typing import Any, Protocol


class Group(Protocol):
    """Ranks that call the same collectives in step. Values may be any picklable objects."""

    def gather(self, value: Any) -> list[Any] | None:
        """Return all values by rank on the first rank, None on the others."""

    def allgather(self, value: Any) -> list[Any]:
        """Return all values by rank on every rank."""

    def broadcast(self, value: Any) -> Any:
        """Return the first rank's value on every rank."""

    def close(self) -> None:
        """Leave the group. Calling it twice is allowed."""


class Alone:
    """A group of one process, which needs no sockets or copies."""

    def gather(self, value: Any) -> list[Any] | None:
        return [value]

    def allgather(self, value: Any) -> list[Any]:
        return [value]

    def broadcast(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        pass


class Collectives:
    """Exchanges picklable objects between all ranks, or between the ranks of this node.

    Collectives block, are not thread-safe and must be called in step by all ranks of the group.
    """

    def __init__(self, everybody: Group, node: Group) -> None:
        self._all = everybody
        self._local = node

    def gather(self, stuff: Any) -> list[Any] | None:
        """Collect a value from every rank at the chief.

        Args:
            stuff: This rank's value. It must be picklable.

        Returns:
            On the chief all values, by rank; elsewhere None.

        Example:
            ```python
            losses = core_context.distributed.gather(loss)
            if losses is not None:  # on the chief
                print(sum(losses) / len(losses))
            ```
        """
        return self._all.gather(stuff)

    def gather_local(self, stuff: Any) -> list[Any] | None:
        """Collect a value from every rank of this node at the node's first rank.

        Args:
            stuff: This rank's value. It must be picklable.

        Returns:
            All values by local rank on the node's first rank, None elsewhere.

        Example:
            ```python
            times = core_context.distributed.gather_local(seconds)
            if times is not None:    # the first rank of each node
                print("slowest on this node:", max(times))
            ```
        """
        return self._local.gather(stuff)

    def allgather(self, stuff: Any) -> list[Any]:
        """Collect a value from every rank on every rank.

        Args:
            stuff: This rank's value. It must be picklable.

        Returns:
            All values by rank.

        Example:
            ```python
            total = sum(core_context.distributed.allgather(correct))
            ```
        """
        return self._all.allgather(stuff)

    def allgather_local(self, stuff: Any) -> list[Any]:
        """Collect a value from every rank of this node on each of them.

        Args:
            stuff: This rank's value. It must be picklable.

        Returns:
            All values by local rank.

        Example:
            ```python
            busy = max(core_context.distributed.allgather_local(seconds))  # the slowest on this node
            ```
        """
        return self._local.allgather(stuff)

    def broadcast(self, stuff: Any) -> Any:
        """Send the chief's value to all ranks.

        Args:
            stuff: The value. It is ignored on other ranks.

        Returns:
            The chief's value.

        Example:
            ```python
            seed = core_context.distributed.broadcast(random.randrange(2**31))  # the same on all ranks
            ```
        """
        return self._all.broadcast(stuff)

    def broadcast_local(self, stuff: Any = None) -> Any:
        """Send the value of this node's first rank to all ranks of the node.

        Args:
            stuff: The value. It is ignored on other ranks.

        Returns:
            The value of the node's first rank.

        Example:
            ```python
            distributed = core_context.distributed
            path = distributed.broadcast_local(download() if distributed.local_rank == 0 else None)
            ```
        """
        return self._local.broadcast(stuff)

    def close(self) -> None:
        """Leave both groups. Calling it twice is allowed.

        Example:
            ```python
            distributed = core.DistributedContext.from_torch_distributed()
            try:
                train(distributed)
            finally:
                distributed.close()    # `with core.init(distributed=distributed)` does this too
            ```
        """
        self._all.close()
        self._local.close()
