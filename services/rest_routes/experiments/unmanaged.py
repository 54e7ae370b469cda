"""Experiments and trials that run outside the cluster (REST spec, sections 3 and 4)."""

from __future__ import annotations

import uuid
from typing import Any, cast, get_args

import msgspec
from starlette.responses import Response

from det_contracts import ids
from det_contracts.commands import CreateTrial, Ending, EndTrial, OpenRun
from det_contracts.problems import invalid, unavailable
from services.catalogue.domain import Trial
from services.catalogue.waiters import Fact
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.bodies import CreateExperiment, NewTrial, TrialPatch, TrialPut, TrialStart
from services.rest_requests.body import request_schema
from services.rest_requests.streaming import wait_until
from services.rest_routes.experiments import experiments
from services.rest_routes.tasks.witness import Witness
from services.rest_routes.trials import trials
from services.submission.configuration import TEXT_LIMIT_BYTES
from services.web.routes import Routes

RUNNING_STATES = ("", "UNSPECIFIED", "ACTIVE", "QUEUED", "PULLING", "STARTING", "RUNNING")
"""States that a running script may report; a heartbeat reports none."""
ENDINGS = get_args(Ending)
PATIENCE_S = 10.0
MAX_NAME_LENGTH = 1000
router = Routes()


@router.put(
    "/experiments/by-external-id/{external_id:path}",
    ("create", "body"),
    **request_schema(CreateExperiment),
)
async def put_experiment(call: Authenticated, external_id: str) -> Response:
    """Return the experiment with that external id, or create it as POST /experiments does."""
    _check_name(external_id)
    return await experiments.submit_experiment(call, external_id)


@router.post("/trials", ("speak", "body"))
async def create(call: Authenticated, body: NewTrial) -> Response:
    """Create a trial of an unmanaged experiment."""
    return await _create(call, body, str(uuid.uuid4()))


@router.put("/trials", ("speak", "body"))
async def put(call: Authenticated, body: TrialPut) -> Response:
    """Return the trial with that external id in its experiment, or create it."""
    external = body.external_trial_id
    _check_name(external)
    # The id becomes part of subjects, where only tokens are allowed. The same text always gives the same
    # UUID.
    name = external if ids.is_request_id(external) else str(uuid.uuid5(uuid.NAMESPACE_OID, external))
    return await _create(call, body.create_trial_request, name)


def _check_name(external_id: str) -> None:
    if not 0 < len(external_id) <= MAX_NAME_LENGTH:
        raise invalid(f"an external id has 1 to {MAX_NAME_LENGTH} characters, not {len(external_id)}")


async def _create(call: UserCall, body: NewTrial, request_id: str) -> Response:
    id = body.experiment_id
    if len(msgspec.json.encode(body.hparams)) > TEXT_LIMIT_BYTES:
        raise invalid(f"the hyperparameters are larger than {TEXT_LIMIT_BYTES} bytes")
    name = await call.create(
        CreateTrial(experiment_id=id, request_id=request_id, hparams=body.hparams, user=call.user.username)
    )
    return await _show(call, await _wait_for_trial(call, id, ids.trial_task_id(id, name)))


async def _wait_for_trial(call: UserCall, experiment_id: int, task_id: str) -> Trial:
    """Wait for a trial's id, and return the trial."""
    matches: list[Trial] = []

    def holds(_: Any) -> bool:
        trial = call.catalogue.trial_of_task(task_id)
        matches.extend([trial] if trial is not None else [])
        return trial is not None

    await wait_until(call, Fact(holds, (("experiments", experiment_id),)), PATIENCE_S)
    if not matches:
        raise unavailable("the trial will be made, but the searcher does not answer; try again")
    return matches[-1]


async def _show(call: UserCall, trial: Trial) -> Response:
    (shown,) = await trials.show(call, [trial])
    return call.answer({"trial": shown})


@router.post("/trials/{trial_id}/start", ("speak", "trial"))
async def start(call: Authenticated, trial_id: int, body: TrialStart) -> Response:
    """Start a run of a trial. With `resume`, it continues from the trial's latest checkpoint."""
    call.catalogue.trial(trial_id)
    command = OpenRun(trial_id=trial_id, resume=body.resume, user=call.user.username)
    opened = await call.peers.command(command)
    return call.answer(
        {
            "trialRunId": opened["run"],
            "latestCheckpoint": opened["checkpoint"],
            "stepsCompleted": opened["steps_completed"],
        }
    )


@router.patch("/trials/{trial_id}", ("speak", "trial"))
async def patch(call: Authenticated, trial_id: int, body: TrialPatch) -> Response:
    """Report that the script is alive, or how it ended."""
    witness = Witness(call, trial_id)
    state = body.state.removeprefix("STATE_")
    if state in ENDINGS:
        command = EndTrial(trial_id=trial_id, state=cast(Ending, state), user=call.user.username)
        await call.peers.command(command)
    elif state in RUNNING_STATES:
        await witness.send_heartbeat()
    else:
        raise invalid(f"state is {body.state}: a script may say RUNNING, or {', '.join(ENDINGS)} at its end")
    return await _show(call, call.catalogue.trial(trial_id))
