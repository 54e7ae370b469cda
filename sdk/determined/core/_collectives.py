"""How ranks agree: the same call, in step, by all of a group (core API spec, section 5)."""

from typing import Any, Protocol


class Group(Protocol):
    """Ranks that call the same collectives in step; values are any picklable objects."""

    def gather(self, value: Any) -> list[Any] | None:
        """Return the values by rank to the first rank, None to the others."""

    def allgather(self, value: Any) -> list[Any]:
        """Return the values by rank to all."""

    def broadcast(self, value: Any) -> Any:
        """Return the first rank's value to all."""

    def close(self) -> None:
        """Leave the group; twice is fine."""


class Alone:
    """The group of one: no socket, no copy."""

    def gather(self, value: Any) -> list[Any] | None:
        return [value]

    def allgather(self, value: Any) -> list[Any]:
        return [value]

    def broadcast(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        pass


class Collectives:
    """Exchange any picklable objects over all ranks, or over those of this node.

    Collectives block, are not thread-safe and must be called in step by all ranks of the group.
    """

    def __init__(self, everybody: Group, node: Group) -> None:
        self._all = everybody
        self._local = node

    def gather(self, stuff: Any) -> list[Any] | None:
        """Collect a value from every rank at the chief.

        Args:
            stuff: This rank's value; anything that can be pickled.

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
            stuff: This rank's value; anything that can be pickled.

        Returns:
            On the node's first rank all values, by local rank; elsewhere None.
        """
        return self._local.gather(stuff)

    def allgather(self, stuff: Any) -> list[Any]:
        """Collect a value from every rank at every rank.

        Args:
            stuff: This rank's value; anything that can be pickled.

        Returns:
            All values, by rank.

        Example:
            ```python
            total = sum(core_context.distributed.allgather(correct))
            ```
        """
        return self._all.allgather(stuff)

    def allgather_local(self, stuff: Any) -> list[Any]:
        """Collect a value from every rank of this node at each of them.

        Args:
            stuff: This rank's value; anything that can be pickled.

        Returns:
            All values, by local rank.
        """
        return self._local.allgather(stuff)

    def broadcast(self, stuff: Any) -> Any:
        """Give all ranks the chief's value.

        Args:
            stuff: The value; that of other ranks is ignored.

        Returns:
            The chief's value.

        Example:
            ```python
            seed = core_context.distributed.broadcast(random.randrange(2**31))  # the same on all ranks
            ```
        """
        return self._all.broadcast(stuff)

    def broadcast_local(self, stuff: Any = None) -> Any:
        """Give all ranks of this node the value of its first rank.

        Args:
            stuff: The value; that of other ranks is ignored.

        Returns:
            The value of the node's first rank.
        """
        return self._local.broadcast(stuff)

    def close(self) -> None:
        """Leave both groups; twice is fine."""
        self._all.close()
        self._local.close()
