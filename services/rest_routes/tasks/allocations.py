"""Routes for the processes of an allocation (REST spec, section 6; scheduling spec, 8.5 and 8.6)."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from det_contracts.commands import AskToLeave, JoinGather, MarkDaemon, Serve
from det_contracts.events import trial as trial_events
from det_contracts.problems import Problem, Refused, failed_precondition, invalid, not_found, unavailable
from services.catalogue.domain import Allocation, State
from services.catalogue.domain.state import Gathering, request_key, share_key
from services.catalogue.waiters import Fact
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.body import Body, Long
from services.rest_requests.path_parameters import AllocationId
from services.rest_requests.streaming import wait_until
from services.rest_routes.tasks.witness import Witness, unmanaged_run, was_preempted
from services.web.query import FromQuery, Integer, QueryModel
from services.web.routes import Routes

MAX_WAIT_S = 3600
RENDEZVOUS_PATIENCE_S = 600.0
"""Timeout of a wait; the client then asks again."""
router = Routes()


class AllGather(Body):
    """POST /allocations/{id}/all_gather"""

    request_uuid: str = ""
    num_peers: Long = 0
    data: Any = None


class ContainerRunning(AllGather):
    """POST /allocations/{id}/notify_container_running. The location is ignored, as it is already known."""

    node_name: str = ""
    rank: Long = 0


class ProxyAddress(Body):
    """POST /allocations/{id}/proxy_address"""

    proxy_address: str
    account: str = ""


class PreemptionQuery(QueryModel):
    """GET /allocations/{id}/signals/preemption"""

    timeout_seconds: Integer = 60


@router.get("/allocations/{allocation_id}/signals/preemption", ("speak", "run"))
async def preemption(
    call: Authenticated, allocation_id: AllocationId, query: FromQuery[PreemptionQuery]
) -> Response:
    """Whether the allocation should leave. Answers when it should, or after at most `timeout_seconds`."""
    allocation_id = _live_allocation(call, allocation_id).id
    seconds = query.timeout_seconds
    if not 0 <= seconds <= MAX_WAIT_S:
        raise invalid(f"timeout_seconds is {seconds}: it must be 0 to {MAX_WAIT_S}")
    if await was_preempted(call.backend.journal, allocation_id):
        return call.answer({"preempt": True})

    def leaves(state: State) -> bool:
        allocation = state.allocations.get(allocation_id)
        return allocation is None or allocation.asked_to_leave or allocation.ended_at is not None

    await wait_until(call, Fact(leaves, (("allocations", allocation_id),)), seconds)
    allocation = call.catalogue.state.allocations.get(allocation_id)
    return call.answer({"preempt": allocation is not None and allocation.asked_to_leave})


@router.post("/allocations/{allocation_id}/signals/ack_preemption", ("speak", "run"))
async def acknowledge(call: Authenticated, allocation_id: AllocationId) -> Response:
    """Announce that the coming exit is intended. The fact is stored before the answer."""
    allocation = _live_allocation(call, allocation_id)
    if allocation.trial_id is not None:
        witness = Witness(call, allocation.trial_id)
        fact = trial_events.PreemptionAcknowledged(allocation.trial_id, allocation.run)
        await witness.record_fact(fact, f"ack-{allocation.trial_id}-{allocation.run}")
    return call.answer({})


@router.post("/allocations/{allocation_id}/signals/pending_preemption", ("speak", "run"))
async def leave_soon(call: Authenticated, allocation_id: AllocationId) -> Response:
    """Report that the host wants the allocation to leave.

    It is preempted, and its trial asks for slots again.
    """
    _live_allocation(call, allocation_id)
    await call.peers.command(AskToLeave(allocation_id=allocation_id, user=call.user.username))
    return call.answer({})


@router.post("/allocations/{allocation_id}/proxy_address", ("speak", "run"))
async def answers_at(call: Authenticated, allocation_id: AllocationId, body: ProxyAddress) -> Response:
    """Report where the task serves HTTP. The gateway forwards `/proxy/<task id>/` there."""
    _live_allocation(call, allocation_id)
    where, user = body.proxy_address, call.session().user
    command = Serve(allocation_id=allocation_id, address=where, account=body.account, user=user)
    await call.peers.command(command)
    return call.answer({})


@router.post("/allocations/{allocation_id}/resources/{resources_id}/daemon", ("speak", "run"))
async def daemon(call: Authenticated, allocation_id: AllocationId, resources_id: str) -> Response:
    """Mark a member as a daemon, which serves the other members and ends with them.

    This has no effect on the only member of an allocation.
    """
    rank = _rank(_live_allocation(call, allocation_id), resources_id)
    command = MarkDaemon(allocation_id=allocation_id, rank=rank, user=call.user.username)
    await call.peers.command(command)
    return call.answer({})


@router.get("/allocations/{allocation_id}/resources/{resources_id}/rendezvous", ("speak", "run"))
async def rendezvous(call: Authenticated, allocation_id: AllocationId, resources_id: str) -> Response:
    """The addresses of all members, once all of them have started."""
    allocation = _live_allocation(call, allocation_id)
    rank = _rank(allocation, resources_id)

    def complete(state: State) -> bool:
        now = state.allocations.get(allocation_id)
        if now is None or now.ended_at is not None:
            return True
        return all(part.worker_id in now.there for part in now.members)

    await wait_until(call, Fact(complete, (("allocations", allocation_id),)), RENDEZVOUS_PATIENCE_S)
    _live_allocation(call, allocation_id)
    if not complete(call.catalogue.state):
        # The client's library repeats a request after a 503, and the wait goes on without holding one
        # connection for hours.
        raise unavailable(f"allocation {allocation_id} is not complete yet; ask again", retry_after_s=1)
    state, parts = call.catalogue.state, sorted(allocation.members, key=lambda part: part.rank)
    workers = [state.workers.get(part.worker_id) or state.away.get(part.worker_id) for part in parts]
    info = {
        "addresses": [worker.address if worker else "" for worker in workers],
        "rank": rank,
        "slots": [len(part.slots) for part in parts],
    }
    return call.answer({"rendezvousInfo": info})


def _rank(allocation: Allocation, resources_id: str) -> int:
    """The rank of the member that `resources_id` names. Raises `Refused` (not found)."""
    for part in allocation.members:
        if resources_id == f"{allocation.id}-{part.rank}":
            return part.rank
    raise not_found("resources", resources_id)


@router.post("/allocations/{allocation_id}/all_gather", ("speak", "run"))
async def all_gather(call: Authenticated, allocation_id: AllocationId, body: AllGather) -> Response:
    """The data of all members, in the same order for each, once all of them have sent theirs."""
    return await _gather(call, allocation_id, body)


@router.post("/allocations/{allocation_id}/notify_container_running", ("speak", "run"))
async def container_runs(
    call: Authenticated, allocation_id: AllocationId, body: ContainerRunning
) -> Response:
    """Report that a member's container is running; returns the data of all members once all are."""
    return await _gather(call, allocation_id, body)


async def _gather(call: UserCall, allocation_id: str, body: AllGather) -> Response:
    _live_allocation(call, allocation_id)
    if not body.request_uuid:
        raise invalid("requestUuid is missing: it distinguishes a repeated request from another member's")
    await call.peers.command(
        JoinGather(
            allocation_id=allocation_id,
            request_id=body.request_uuid,
            peers=body.num_peers,
            data=body.data,
            user=call.session().user,
        )
    )

    def full(state: State) -> bool:
        gathering = state.gatherings.get(allocation_id)
        number = state.joined.get(request_key(allocation_id, body.request_uuid))
        return (
            gathering is None or number is None or gathering.joined >= _last_share_number(gathering, number)
        )

    await wait_until(call, Fact(full, (("gatherings", allocation_id),)), RENDEZVOUS_PATIENCE_S)
    _live_allocation(call, allocation_id)
    return call.answer({"data": _gathered_data(call.catalogue.state, allocation_id, body.request_uuid)})


def _last_share_number(gathering: Gathering, number: int) -> int:
    """The number of the last share in the all-gather that share `number` belongs to."""
    return number + (-number) % gathering.peers


def _gathered_data(state: State, allocation_id: str, request_id: str) -> list[Any]:
    """The data of the all-gather that a request belongs to. Raises `Refused`."""
    gathering = state.gatherings.get(allocation_id)
    number = state.joined.get(request_key(allocation_id, request_id))
    if gathering is None or number is None:
        raise failed_precondition(
            f"the all-gather of request {request_id} has ended: its data is kept until the next one of "
            f"allocation {allocation_id} is complete"
        )
    last = _last_share_number(gathering, number)
    if gathering.joined < last:
        raise unavailable(f"not all {gathering.peers} members have joined yet; try again", retry_after_s=1)
    numbers = range(last - gathering.peers + 1, last + 1)
    return [state.shares[share_key(allocation_id, number)].data for number in numbers]


@router.post("/allocations/{allocation_id}/ready", ("speak", "run"))
@router.post("/allocations/{allocation_id}/waiting", ("speak", "run"))
async def is_there(call: Authenticated, allocation_id: AllocationId) -> Response:
    """Report that a process is ready or waiting.

    Has no effect: a running allocation can always be preempted.
    """
    _live_allocation(call, allocation_id)
    return call.answer({})


def _live_allocation(call: UserCall, allocation_id: str) -> Allocation:
    """A live allocation.

    Raises `Refused`: not an id (400), unknown or ended (404), or someone else's (403).
    """
    if "." not in allocation_id:
        raise invalid(f"'{allocation_id}' is not an allocation id, which looks like <task id>.<run>")
    outside = unmanaged_run(call, allocation_id)
    allocation: Allocation | None = outside or call.catalogue.state.allocations.get(allocation_id)
    # A run outside the cluster that was stopped here must still be told to leave.
    stopped = outside is not None and outside.asked_to_leave
    if allocation is None or (allocation.ended_at is not None and not stopped):
        raise not_found("live allocation", allocation_id)
    session = call.session()
    # One run's script must not make another run leave, not even of the same owner.
    if session.allocation and session.allocation != allocation_id:
        raise Refused(Problem("permission_denied", f"the token is that of {session.allocation}"))
    return allocation
