"""Routes for the script of a trial (REST spec, section 4)."""

from __future__ import annotations

import math
import sys
from typing import Any

from starlette.responses import Response

from det_contracts.events import trial as trial_events
from det_contracts.problems import failed_precondition, invalid, unavailable
from services.catalogue.waiters import Fact
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.body import Body, Long, request_schema
from services.rest_requests.streaming import wait_until
from services.rest_routes.tasks.witness import Witness
from services.web.routes import Routes

ANSWER_PATIENCE_S = 10.0
"""How long to wait for the search method's answer, in seconds."""
EARLY_EXIT_REASONS = ("EXITED_REASON_INVALID_HP", "EXITED_REASON_INIT_INVALID_HP")
NON_FINITE = ("NaN", "Infinity", "-Infinity")
router = Routes()


class Operation(Body):
    """The part of an operation that a script sends back."""

    length: Long


class CompletedOperation(Body):
    """POST /trials/{id}/searcher/completed_operation"""

    op: Operation
    searcher_metric: Any = None


class EarlyExit(Body):
    """POST /trials/{id}/early_exit"""

    reason: str


class Runner(Body):
    """POST /trials/{id}/runner/metadata"""

    state: str = ""


@router.get("/trials/{trial_id}/searcher/operation", ("speak", "trial"))
async def operation(call: Authenticated, trial_id: int) -> Response:
    """The trial's current operation."""
    witness = Witness(call, trial_id)
    op, completed = await witness.operation()
    shown = None
    if op is not None:
        shown = {"validateAfter": {"requestId": witness.trial.request_id, "length": str(op.length)}}
    return call.answer({"op": shown, "completed": completed})


@router.post("/trials/{trial_id}/searcher/completed_operation", ("speak", "trial"))
async def complete(call: Authenticated, trial_id: int, body: CompletedOperation) -> Response:
    """Complete an operation with its searcher metric. Answers once the search method has reacted."""
    witness = Witness(call, trial_id)
    run = witness.run
    op, completed = await witness.operation()
    if op is None:
        raise failed_precondition(f"trial {trial_id} has no operation to complete")
    if body.op.length < op.length or (completed and body.op.length == op.length):
        # An earlier operation, or the same one again because the answer was lost.
        return call.answer({})
    if body.op.length != op.length:
        raise invalid(f"the open operation of trial {trial_id} has length {op.length}, not {body.op.length}")
    fact = trial_events.OperationCompleted(
        trial_id=trial_id,
        run=run,
        seq=op.seq,
        length=op.length,
        metric=_encode_non_finite(body.searcher_metric),
    )
    await witness.record_fact(fact, f"completed-{trial_id}-{run}-{op.seq}")
    # The script asks for its next operation at once, and would get the completed one again.
    await _wait_for_searcher(call, trial_id, op.seq)
    return call.answer({})


def _encode_non_finite(metric: Any) -> Any:
    """Spell out NaN and infinities, which JSON lacks."""
    if isinstance(metric, float) and not math.isfinite(metric):
        return "NaN" if math.isnan(metric) else "Infinity" if metric > 0 else "-Infinity"
    return metric


async def _wait_for_searcher(call: UserCall, trial_id: int, seq: int) -> None:
    def holds(state: Any) -> bool:
        trial = state.trials.get(trial_id)
        return trial is None or trial.answered >= seq or trial.ended_at is not None

    await wait_until(call, Fact(holds, (("trials", trial_id),)), ANSWER_PATIENCE_S)
    if not holds(call.catalogue.state):
        raise unavailable(
            f"the metric of trial {trial_id} is stored, but the searcher does not answer; try again"
        )


@router.post("/trials/{trial_id}/progress", ("speak", "trial"), **request_schema({"type": "number"}))
async def progress(call: Authenticated, trial_id: int) -> Response:
    """Report progress of the operation: a bare number, in the searcher's unit."""
    witness, units = Witness(call, trial_id), await call.json()
    if isinstance(units, bool) or not isinstance(units, int | float):
        raise invalid(f"progress must be a number, not {units!r}")
    if abs(units) > sys.float_info.max:
        raise invalid("progress must be a number of at most 308 digits")
    await witness.record_fact(trial_events.Progressed(trial_id, witness.run, float(units)))
    return call.answer({})


@router.post("/trials/{trial_id}/early_exit", ("speak", "trial"))
async def exit_early(call: Authenticated, trial_id: int, body: EarlyExit) -> Response:
    """Report that the script gives up the trial. Repeats have no effect."""
    witness = Witness(call, trial_id)
    if body.reason not in EARLY_EXIT_REASONS:
        raise invalid(f"reason '{body.reason}' must be one of {', '.join(EARLY_EXIT_REASONS)}")
    fact = trial_events.ExitedEarly(trial_id, witness.run, body.reason)
    await witness.record_fact(fact, f"early-{trial_id}-{witness.run}")
    return call.answer({})


@router.post("/trials/{trial_id}/runner/metadata", ("speak", "trial"))
async def describe_runner(call: Authenticated, trial_id: int, body: Runner) -> Response:
    """Set a short text about what the script is doing."""
    witness = Witness(call, trial_id)
    await witness.record_fact_and_wait(trial_events.StatusSet(trial_id, witness.run, body.state))
    return call.answer({})
