"""Commands from the processes of an allocation: shares of all-gathers, and HTTP addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts import ids
from det_contracts.commands import JoinGather, Serve
from det_contracts.events.gateway import GatherJoined, Served
from det_contracts.problems import Problem, Refused, failed_precondition, invalid, not_found
from services.catalogue.domain import State
from services.catalogue.domain.state import Gathered, Gathering, request_key
from services.kit.rules import Call, Result

MAX_SHARE_BYTES = 64 * 1024
"""Maximum data of one member in one all-gather."""
MAX_ROUND_BYTES = 8 * 1024 * 1024
"""Maximum data of all members in one all-gather, which is sent to each of them."""
MAX_RUN_BYTES = 64 * 1024 * 1024
"""Maximum data of all all-gathers of a run, which stays in the log."""
MAX_STORED_BYTES = 512 * 1024 * 1024
"""Maximum data of all runs together that members may still request."""
OVERHEAD_BYTES = 512
"""Approximate size of an event without its data."""
MAX_REQUEST_ID_LENGTH = 256
TASK_PORTS = ids.TASK_PORTS


def serve(state: State, command: Serve, call: Call) -> Result:
    """Store the HTTP address of a task. Repeating the same address has no effect."""
    if command.allocation_id not in state.live:
        raise not_found("live allocation", command.allocation_id)
    task = state.tasks.get(ids.task_of(command.allocation_id))
    if task is None:
        raise invalid(f"allocation {command.allocation_id} does not belong to a task that serves HTTP")
    check_task_address(state, command.allocation_id, command.address)
    if not (command.account == "" or ids.is_token(command.account)):
        raise invalid(f"account is '{command.account[:100]}': the name of a user of its host is expected")
    if (task.address, task.account) == (command.address, command.account):
        return Result()
    served = Served(command.allocation_id, command.address, "the task said so", account=command.account)
    return Result([served])


def check_task_address(state: State, allocation_id: str, address: str) -> None:
    """Raise `Refused` (400) unless the address is a task port on one of the task's own workers.

    The gateway can reach hosts that the task's owner cannot, so it must not forward to arbitrary ones.
    """
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isascii() and port.isdecimal() and len(port) <= 5):
        raise invalid(f"proxyAddress is '{address[:100]}': host:port is expected")
    members = [part.worker_id for part in state.allocations[allocation_id].members]
    # A worker that is away for a moment still runs the task, and keeps its address.
    workers = [state.workers.get(id) or state.away.get(id) for id in members]
    worker_addresses = sorted({worker.address for worker in workers if worker is not None})
    if host not in worker_addresses:
        raise invalid(
            f"proxyAddress is '{address[:100]}', but allocation {allocation_id} runs on workers at "
            f"{', '.join(worker_addresses) or 'no address yet'}: a task is reached at its own worker only"
        )
    if int(port) not in TASK_PORTS:
        raise invalid(
            f"proxyAddress is '{address[:100]}': its port must be one that the task was given, such as "
            f"C10D_PORT ({TASK_PORTS.start} to {TASK_PORTS.stop - 1})"
        )


def join_gather(state: State, command: JoinGather, call: Call) -> Result:
    """Store a member's share of an all-gather. Repeating a request has no effect."""
    # What an ended run has gathered is dropped with its end; a late share would stay in memory for ever.
    if command.allocation_id not in state.live:
        raise not_found("allocation", command.allocation_id)
    if not 1 <= command.peers <= 10_000:
        raise invalid(f"numPeers is {command.peers}: it must be 1 to 10000")
    if not 0 < len(command.request_id) <= MAX_REQUEST_ID_LENGTH:
        raise invalid(f"requestUuid must have 1 to {MAX_REQUEST_ID_LENGTH} characters")
    size = len(msgspec.json.encode(command.data))
    if size > MAX_SHARE_BYTES:
        raise invalid(f"the data of an all-gather is limited to {MAX_SHARE_BYTES} bytes")
    # Before the limits: a member whose answer was lost asks again, and must not be refused for a share that
    # it has already given.
    if request_key(command.allocation_id, command.request_id) in state.joined:
        return Result()
    _check_limits(state, command, size)
    return Result(
        [
            GatherJoined(
                allocation_id=command.allocation_id,
                request_id=command.request_id,
                peers=command.peers,
                data=command.data,
                reason="a member of the allocation asked for it",
            )
        ]
    )


def _check_limits(state: State, command: JoinGather, size: int) -> None:
    """Raise `Refused` for more data than an all-gather is for, which is rendezvous, not training."""
    gathering = state.gatherings.get(command.allocation_id) or Gathering(command.peers)
    # A round ends after `peers` shares. With two opinions of the number, one part of the members would wait
    # for ever.
    if gathering.peers != command.peers:
        raise invalid(
            f"numPeers is {command.peers}, other members of the allocation reported {gathering.peers}"
        )
    subject = f"allocation {command.allocation_id}"
    if gathering.round_bytes + size > MAX_ROUND_BYTES:
        raise failed_precondition(
            f"the members of {subject} give {gathering.round_bytes + size} bytes to one all-gather, the most "
            f"is {MAX_ROUND_BYTES}: give less, or write it to the checkpoint storage"
        )
    if gathering.size_bytes + gathering.joined * OVERHEAD_BYTES + size > MAX_RUN_BYTES:
        raise failed_precondition(
            f"{subject} has gathered {gathering.size_bytes} bytes in {gathering.joined} shares, as much as a "
            "run may: this is for its members to find one another; train with the collectives of your "
            "framework"
        )
    if state.gathered.get("all", Gathered()).size_bytes + size > MAX_STORED_BYTES:
        message = "the all-gathers of all runs together hold too much just now; try again later"
        # Others' runs end and free this soon, so the client's library may repeat the request, other than
        # after the two limits above.
        raise Refused(Problem("exhausted", message, retry_after_s=10))


COMMANDS: dict[Any, Callable[[State, Any, Call], Result]] = {JoinGather: join_gather, Serve: serve}
