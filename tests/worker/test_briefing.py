"""What every node of an allocation learns of the others: the same everywhere."""

import msgspec

from det_contracts import orders
from det_contracts.events.scheduler import AllocationAssigned, Part
from services.kit.credentials import Authority
from worker.briefing import Gang, share_of
from worker.preparing import Preparer
from worker.settings import WorkerSettings

ASSIGNED = AllocationAssigned(
    allocation_id="1.t1.1",
    task_id="1.t1",
    kind="TRIAL",
    parts=(Part("b", (0, 1), 1), Part("c", (4, 5, 6), 2), Part("a", (3,), 0)),
    trial_id=1,
    experiment_id=1,
    run=1,
    reason="",
)
TOLD = orders.Briefing(
    assigned=ASSIGNED,
    user="ann",
    config={"name": "x"},
    gang=orders.Gang(("10.0.0.0", "10.0.0.1", "10.0.0.2"), (1, 2, 3)),
    checkpoint="c",
    trial=orders.TrialFacts(trial_id=1, experiment_id=1, run=1, seed=7, hparams={}, steps_completed=5),
)


def test_all_nodes_by_rank_whatever_the_order_of_the_parts():
    for rank, worker_id in enumerate("abc"):
        found = share_of(worker_id, TOLD)
        assert found.gang == Gang(("10.0.0.0", "10.0.0.1", "10.0.0.2"), (1, 2, 3), rank)
        assert found.task.resources_id == f"1.t1.1-{rank}"


def test_a_share_has_all_that_a_start_needs():
    found = share_of(
        "b", msgspec.structs.replace(TOLD, assigned=msgspec.structs.replace(ASSIGNED, fence_s=9.0))
    )
    assert (found.fence_s, found.config, found.task.user, found.task.latest_checkpoint) == (
        9.0,
        {"name": "x"},
        "ann",
        "c",
    )
    assert (found.task.trial.seed, found.task.trial.steps_completed) == (7, 5)
    assert found.task.trial.config == {"name": "x"}


def test_all_nodes_have_one_token_and_no_other_allocation_has_it(tmp_path):
    signing = tmp_path / "signing.json"

    def preparer(seed):
        signing.write_text(msgspec.json.encode({"account": "A", "seed": seed}).decode())
        return Preparer(WorkerSettings(trial_signing=signing, worker_home=tmp_path), None, tmp_path)

    def token(by, allocation_id):
        briefing = share_of("a", TOLD)
        return by._task_token(msgspec.structs.replace(briefing.task, allocation_id=allocation_id))

    seed, another = (Authority.create().trial_signing_seed for _ in range(2))
    one, other = preparer(seed), preparer(seed)
    assert token(one, "1.t1.1") == token(other, "1.t1.1")
    assert token(one, "1.t1.1") != token(one, "1.t1.2")
    assert token(preparer(another), "1.t1.1") != token(one, "1.t1.1")
