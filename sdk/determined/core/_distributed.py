"""This process's place in its job, and communication between ranks (core API spec, section 5)."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

from determined import _arguments
from determined.core._collectives import Alone, Collectives, Group
from determined.core._outcome import Outcome

_FIELDS = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")
_DEFAULT_PORT = 12360
_OF_RANKS = ("RANK", "WORLD_SIZE", "DET_SESSION_TOKEN", "TORCHELASTIC_RUN_ID")
"""Rank and number of ranks, and what is set where a cluster or torchrun watches them."""


def port_1() -> int:
    """Default port the chief listens on. Environment variables separate two jobs on one host."""
    return int(os.environ.get("INTER_TRAIN_PROCESS_COMM_PORT_1") or _DEFAULT_PORT)


def port_2() -> int:
    """Default port the chief listens on for background uploads by ranks of several nodes."""
    return int(os.environ.get("INTER_TRAIN_PROCESS_COMM_PORT_2") or port_1() + 16)


def announce_rank() -> None:
    """Show the other ranks of this host that this one runs, if it is one that was started by hand."""
    # By their bytes: a template for warm starts imports this for many ranks, and must not read what differs
    # for each of them. Those ranks have a launcher and need not be announced.
    environment: Any = getattr(os, "environb", {})
    named = {name: os.fsdecode(environment.get(name.encode(), b"")) for name in _OF_RANKS}
    if _is_by_hand(named):
        # By name, because it needs fcntl, which Windows lacks.
        importlib.import_module("determined.core._presence").announce()


def _is_by_hand(variables: Mapping[str, str]) -> bool:
    """Return whether this is one of several ranks that neither a cluster nor torchrun watches."""
    rank, size, *watchers = (variables.get(name, "") for name in _OF_RANKS)
    watched = any(watchers)
    return rank.isdecimal() and size.isdecimal() and int(rank) < int(size) != 1 and not watched


def check_ranks(name: str, context: Any) -> None:
    """Raise TypeError for anything that is not used like a `DistributedContext`."""
    expected = (
        "a core.DistributedContext, which DistributedContext.from_torch_distributed() makes of the variables "
        "of torch's launcher"
    )
    _arguments.having(name, context, ("rank", "size", "broadcast"), expected)


def _never(rank: int) -> bool:
    return False


class DistributedContext(Collectives):
    """This process's place in the trial, with collectives over all ranks and over the ranks of one node.

    If a launcher started the processes, use `from_torch_distributed`, `from_deepspeed` or `from_horovod`. The
    constructor returns once all ranks have joined. Collectives block, are not thread-safe, and must be called
    in step by all ranks of the group.

    Args:
        rank: Index of this process among all processes; 0 is the chief. Give all six numbers or none; none
            means a job of one process.
        size: Total number of processes.
        local_rank: Index of this process on its node.
        local_size: Number of processes on this node.
        cross_rank: Index of this node.
        cross_size: Number of nodes.
        chief_ip: Address of the chief's node. Required with several nodes.
        pub_port: Port the chief listens on.
        pull_port: Port the chief listens on when ranks of several nodes upload in the background.
        port_offset: Accepted for compatibility with 0.25. It has no effect.
        force_tcp: Whether ranks of the same node also communicate over TCP.

    Raises:
        TypeError: If one of the numbers is none, or `chief_ip` is no text.
        ValueError: If some of the numbers are missing or out of range.
        AssertionError: If `chief_ip` is missing with several nodes.

    Example:
        ```python
        distributed = det.core.DistributedContext.from_torch_distributed()
        with det.core.init(distributed=distributed) as core_context:
            loss = train()
            losses = distributed.gather(loss)
            if losses is not None:    # on the chief
                core_context.train.report_training_metrics(100, {"loss": sum(losses) / len(losses)})
        ```
    """

    def __init__(
        self,
        *,
        rank: int | None = None,
        size: int | None = None,
        local_rank: int | None = None,
        local_size: int | None = None,
        cross_rank: int | None = None,
        cross_size: int | None = None,
        chief_ip: str | None = None,
        pub_port: int | None = None,
        pull_port: int | None = None,
        port_offset: int = 0,
        force_tcp: bool = False,
    ) -> None:
        numbers = (rank, size, local_rank, local_size, cross_rank, cross_size)
        places = _places(dict(zip(_FIELDS, numbers, strict=True)))
        self.rank, self.size, self.local_rank, self.local_size, self.cross_rank, self.cross_size = places
        if chief_ip is not None:
            _arguments.text("chief_ip", chief_ip)
        for name, port in (("pub_port", pub_port), ("pull_port", pull_port)):
            if port is not None:
                _arguments.integer(name, port, 0, 65535)
        if self.local_size != self.size and not chief_ip:
            raise AssertionError("chief_ip is needed when ranks are on several nodes (local_size != size)")
        # Within one node the loopback address always works, also where the host's own name leads nowhere.
        self._chief_ip = chief_ip if chief_ip and self.local_size != self.size else "127.0.0.1"
        self._second_port = port_2() if pull_port is None else pull_port
        self._background_group: Group | None = None
        super().__init__(*self._join(port_1() if pub_port is None else pub_port, force_tcp))

    def _join(self, port: int, force_tcp: bool) -> tuple[Group, Group]:
        """Return the group of all ranks and the group of this node's ranks, once all ranks have joined."""
        if self.size == 1:
            return Alone(), Alone()
        # Imported by name, so that a job of one process does not load the socket code.
        rendezvous = importlib.import_module("determined.core._rendezvous")
        presence = importlib.import_module("determined.core._presence") if _is_by_hand(os.environ) else None
        has_died = presence.has_died if presence else _never
        one_node = self.local_size == self.size
        everybody: Group
        if self.rank == 0:
            everywhere = "::" if ":" in self._chief_ip else ""
            listener = rendezvous.listen(self._chief_ip if one_node else everywhere, port)
            everybody = rendezvous.lead(listener, self.size, has_died=has_died)
        else:
            everybody = rendezvous.follow((self._chief_ip, port), self.rank, self.size, has_died=has_died)
        if presence:
            # Only now: until all have joined, the file is the only sign that this rank runs.
            presence.joined()
        if one_node:
            return everybody, everybody
        node = rendezvous.join_node(everybody, self.cross_rank, self.local_rank, self.local_size, force_tcp)
        return everybody, node

    def _second_group(self) -> Group:
        """Return a second group of all ranks, for a background thread. All ranks call this in step."""
        if self.size == 1:
            return Alone()
        if self._background_group is None:
            self._background_group = self._join_background_group()
        return self._background_group

    def _join_background_group(self) -> Group:
        rendezvous = importlib.import_module("determined.core._rendezvous")
        one_node = self.local_size == self.size
        everywhere = "::" if ":" in self._chief_ip else ""
        place = ("127.0.0.1", 0) if one_node else (everywhere, self._second_port)
        opened = Outcome(lambda: rendezvous.listen(*place)) if self.rank == 0 else None
        port = Outcome(lambda: opened.get().getsockname()[1]) if opened else None
        # Also if the chief cannot listen: the others would wait for its port.
        outcome: Outcome[int] = self.broadcast(port)
        address = (self._chief_ip, outcome.get())
        group: Group = (
            rendezvous.lead(opened.get(), self.size)
            if opened
            else rendezvous.follow(address, self.rank, self.size)
        )
        return group

    def close(self) -> None:
        """Leave all groups. Calling it twice is allowed.

        Example:
            ```python
            distributed = det.core.DistributedContext.from_torch_distributed()
            try:
                print(distributed.allgather(distributed.rank))
            finally:
                distributed.close()    # core.init() does this for a context that it was given
            ```
        """
        super().close()
        if self._background_group is not None:
            self._background_group.close()

    @classmethod
    def from_torch_distributed(cls, chief_ip: str | None = None) -> "DistributedContext":
        """Create the context from torchrun's environment variables.

        Args:
            chief_ip: Address of the chief's node. Not needed on a cluster.

        Returns:
            The context, once all ranks have joined.

        Raises:
            KeyError: If a variable is missing, because the script was not started by torchrun.

        Example:
            ```python
            torch.distributed.init_process_group("nccl")
            distributed = det.core.DistributedContext.from_torch_distributed()
            with det.core.init(distributed=distributed) as core_context:
                train(core_context)
            ```
        """
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE")
        return cls._from_environment(names, chief_ip)

    @classmethod
    def from_deepspeed(cls, chief_ip: str | None = None) -> "DistributedContext":
        """Create the context from the environment variables of DeepSpeed's launcher.

        Args:
            chief_ip: Address of the chief's node. Not needed on a cluster.

        Returns:
            The context, once all ranks have joined.

        Raises:
            KeyError: If a variable is missing, because the script was not started by that launcher.

        Example:
            ```python
            deepspeed.init_distributed()
            distributed = det.core.DistributedContext.from_deepspeed()
            with det.core.init(distributed=distributed) as core_context:
                train(core_context)
            ```
        """
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
        return cls._from_environment(names, chief_ip)

    @classmethod
    def from_horovod(cls, hvd: Any, chief_ip: str | None = None) -> "DistributedContext":
        """Create the context from Horovod.

        Args:
            hvd: An initialized Horovod module, such as `horovod.torch`.
            chief_ip: Address of the chief's node. Not needed on a cluster.

        Returns:
            The context, once all ranks have joined.

        Example:
            ```python
            import horovod.torch as hvd

            hvd.init()
            distributed = det.core.DistributedContext.from_horovod(hvd)
            ```
        """
        if not all(hasattr(hvd, field) for field in _FIELDS):
            raise TypeError(
                _arguments.wrong("hvd", "an initialized Horovod module, such as horovod.torch", hvd)
            )
        numbers = {field: getattr(hvd, field)() for field in _FIELDS}
        return cls(**numbers, chief_ip=chief_ip or os.environ.get("DET_CHIEF_IP"))

    @classmethod
    def _from_environment(cls, names: tuple[str, ...], chief_ip: str | None) -> "DistributedContext":
        numbers: dict[str, Any] = {
            field: int(os.environ[name]) for field, name in zip(_FIELDS, names, strict=True)
        }
        return cls(**numbers, chief_ip=chief_ip or os.environ.get("DET_CHIEF_IP"))

    def get_rank(self) -> int:
        """Return the index of this process among all processes; 0 is the chief.

        Returns:
            From 0 to `get_size() - 1`.

        Example:
            ```python
            if core_context.distributed.get_rank() == 0:
                print("printed once")
            ```
        """
        return self.rank

    def get_local_rank(self) -> int:
        """Return the index of this process on its node; 0 is the local chief.

        Returns:
            From 0 to the number of processes of the node, exclusive.

        Example:
            ```python
            device = torch.device("cuda", core_context.distributed.get_local_rank())
            ```
        """
        return self.local_rank

    def get_size(self) -> int:
        """Return the total number of processes.

        Returns:
            At least 1.

        Example:
            ```python
            batch_size = 256 // core_context.distributed.get_size()
            ```
        """
        return self.size

    def get_num_agents(self) -> int:
        """Return the number of nodes.

        Returns:
            At least 1.

        Example:
            ```python
            if core_context.distributed.get_num_agents() > 1:
                print("the processes communicate over the network")
            ```
        """
        return self.cross_size


def _places(numbers: dict[str, int | None]) -> tuple[int, int, int, int, int, int]:
    missing = [name for name, value in numbers.items() if value is None]
    if len(missing) == len(numbers):
        return 0, 1, 0, 1, 0, 1
    # All are given or none: a number that is missing would be guessed wrong, and ranks would wait for ever.
    if missing:
        raise ValueError(f"DistributedContext needs all of {', '.join(_FIELDS)} or none; missing: {missing}")
    rank, size, local_rank, local_size, cross_rank, cross_size = (
        # Scripts pass what they read from variables, which is text.
        int(value) if isinstance(value, str) and value.isdecimal() else _arguments.integer(name, value)
        for name, value in numbers.items()
    )
    for name, index, count in (
        ("rank", rank, size),
        ("local_rank", local_rank, local_size),
        ("cross_rank", cross_rank, cross_size),
    ):
        if not 0 <= index < count:
            raise ValueError(
                f"DistributedContext: {name} {index} of {count} makes no sense: it counts from 0"
            )
    return rank, size, local_rank, local_size, cross_rank, cross_size


class DummyDistributedContext(DistributedContext):
    """A job of one process: rank 0 of 1."""

    def __init__(self) -> None:
        super().__init__()
