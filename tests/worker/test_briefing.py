"""What every node of an allocation learns of the others: the same everywhere."""

import msgspec
import pytest

from det_contracts import orders
from det_contracts.events.scheduler import AllocationAssigned, Part
from services.kit.sealing import seal_secrets, sealer_from
from worker.briefing import Gang, share_of
from worker.run_setup import CannotPrepare, Preparer
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
        share = share_of(worker_id, TOLD)
        assert share.gang == Gang(("10.0.0.0", "10.0.0.1", "10.0.0.2"), (1, 2, 3), rank)
        assert share.task.resources_id == f"1.t1.1-{rank}"


def test_a_share_has_all_that_a_start_needs():
    share = share_of(
        "b", msgspec.structs.replace(TOLD, assigned=msgspec.structs.replace(ASSIGNED, fence_s=9.0))
    )
    assert (share.fence_s, share.config, share.task.user, share.task.latest_checkpoint) == (
        9.0,
        {"name": "x"},
        "ann",
        "c",
    )
    assert (share.task.trial.seed, share.task.trial.steps_completed) == (7, 5)
    assert share.task.trial.config == {"name": "x"}


def test_all_nodes_have_the_token_of_their_order():
    briefing = msgspec.structs.replace(TOLD, token="task.a.b")
    for worker_id in "abc":
        task = share_of(worker_id, briefing).task
        assert (task.session_token, task.user_token) == ("task.a.b", "task.a.b")


def test_secrets_are_opened_for_the_owner_of_the_task_alone(tmp_path):
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    config = {"name": "x", "environment": {"environment_variables": {"cpu": ["A_TOKEN=hush"]}}}
    lying = seal_secrets(config, "ann", sealer_from(key))
    assert "hush" not in str(lying)
    briefing = share_of("a", msgspec.structs.replace(TOLD, config=lying))
    settings = WorkerSettings(sealing_key=key, worker_home=tmp_path)
    decrypted = Preparer(settings, None, tmp_path)._decrypted(briefing)
    assert decrypted.config == decrypted.task.trial.config == config
    another = msgspec.structs.replace(briefing, task=msgspec.structs.replace(briefing.task, user="bob"))
    for preparer, unreadable in (
        (Preparer(settings, None, tmp_path), another),
        (Preparer(WorkerSettings(worker_home=tmp_path), None, tmp_path), briefing),
    ):
        with pytest.raises(CannotPrepare, match=r"cpu\.A_TOKEN cannot be opened"):
            preparer.prepare(tmp_path / "run", unreadable, (), 1, set())
