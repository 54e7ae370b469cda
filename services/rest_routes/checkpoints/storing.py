"""Registration of checkpoints by scripts (REST spec, section 5)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.responses import Response

from det_contracts import checkpoint_ids, ids
from det_contracts.events.trial import CheckpointStored
from det_contracts.problems import failed_precondition, invalid, not_found
from det_contracts.queries import StorageRefusal
from services.catalogue.domain import Allocation
from services.catalogue.peers import query_or_empty
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.body import Body, Long, documented
from services.rest_routes.tasks.witness import Witness, run_of_script
from services.web.errors import forbidden
from services.web.query import FromQuery, Integer, QueryModel
from services.web.routes import Routes

router = Routes()


STATES = ["STATE_COMPLETED", "STATE_UNSPECIFIED"]


class Stored(Body):
    """POST /checkpoints"""

    task_id: str = ""
    allocation_id: str = ""
    uuid: Annotated[str, documented(pattern="^[A-Za-z0-9_-]+$")]
    resources: dict[str, Long] = Field(default_factory=dict)
    metadata: Annotated[
        dict[str, Any],
        documented(
            properties={"steps_completed": {"type": "integer", "minimum": 0}}, required=["steps_completed"]
        ),
    ]
    secret: str = ""
    state: Annotated[str, documented(enum=STATES)] = STATES[0]


class RefusalQuery(QueryModel):
    """GET /trials/{trial_id}/storage-refusal"""

    size_bytes: Integer = 0
    """Size of the checkpoint; 0 if not known yet."""


@router.get("/trials/{trial_id}/storage-refusal", ("speak", "trial"))
async def refusal(call: Authenticated, trial_id: int, query: FromQuery[RefusalQuery]) -> Response:
    """Why the trial may not store another checkpoint now; empty if it may (our addition).

    It is also empty while the answer is unknown, so that checkpoints never wait for it.
    """
    question = StorageRefusal(trial_id, query.size_bytes)
    answer = await query_or_empty(call.peers, question, call.catalogue.position)
    return call.answer({"reason": answer.get("reason", "")})


@router.post("/checkpoints", ("speak", "body"))
async def store(call: Authenticated, body: Stored) -> Response:
    """Register a checkpoint whose files are all in the storage. Repeats have no effect."""
    # It becomes a directory of the storage, and part of a subject.
    if not ids.is_token(body.uuid):
        raise invalid(f"uuid '{body.uuid}' may hold letters, digits, - and _ only")
    if body.state not in STATES:
        raise invalid(f"state is {body.state}: only what is complete is registered")
    steps = body.metadata.get("steps_completed")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise invalid(f"metadata.steps_completed is {steps!r}: it must be a whole number, at least 0")
    allocation = _allocation(call, body)
    if allocation.trial_id is None:
        raise failed_precondition(f"allocation {allocation.id} belongs to no trial, so it has no checkpoints")
    if not checkpoint_ids.may_register(allocation.trial_id, body.uuid, body.secret):
        raise forbidden(f"checkpoint {body.uuid} is another trial's than {allocation.trial_id}")
    witness = Witness(call, allocation.trial_id)
    # The script repeats its report after a lost answer, perhaps days later, when the broker no longer
    # recognizes the message.
    registered = call.catalogue.state.checkpoints.get(body.uuid)
    if registered is not None and registered.trial_id != allocation.trial_id:
        raise failed_precondition(f"checkpoint {body.uuid} is registered by another trial")
    if registered is None:
        fact = CheckpointStored(
            trial_id=allocation.trial_id,
            experiment_id=allocation.experiment_id,
            run=allocation.run,
            task_id=allocation.task_id,
            allocation_id=allocation.id,
            uuid=body.uuid,
            resources=body.resources,
            metadata=body.metadata,
            steps_completed=steps,
            secret=body.secret,
        )
        await witness.record_fact_and_wait(fact, f"checkpoint-{body.uuid}")
    return call.answer({})


def _allocation(call: UserCall, body: Stored) -> Allocation:
    """The run that stored the checkpoint: the one named, or else that of the token."""
    allocation = run_of_script(call, body.task_id, body.allocation_id)
    if allocation is None or (body.task_id and allocation.task_id != body.task_id):
        raise not_found(f"allocation of task '{body.task_id}'", body.allocation_id)
    return allocation
