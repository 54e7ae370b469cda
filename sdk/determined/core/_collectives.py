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
        """Return everybody's value by rank to the chief, None to the others."""
        return self._all.gather(stuff)

    def gather_local(self, stuff: Any) -> list[Any] | None:
        """Return this node's values by local rank to the local chief, None to the others."""
        return self._local.gather(stuff)

    def allgather(self, stuff: Any) -> list[Any]:
        """Return everybody's value by rank to all."""
        return self._all.allgather(stuff)

    def allgather_local(self, stuff: Any) -> list[Any]:
        """Return this node's values by local rank to all of the node."""
        return self._local.allgather(stuff)

    def broadcast(self, stuff: Any) -> Any:
        """Return the chief's value to all; the argument of the others is ignored."""
        return self._all.broadcast(stuff)

    def broadcast_local(self, stuff: Any = None) -> Any:
        """Return the local chief's value to all of the node; the argument of the others is ignored."""
        return self._local.broadcast(stuff)

    def close(self) -> None:
        """Leave both groups; twice is fine."""
        self._all.close()
        self._local.close()
