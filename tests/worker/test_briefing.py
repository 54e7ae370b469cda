"""What every node of an allocation learns of the others: the same everywhere."""

import asyncio

import msgspec
import pytest

from det_contracts import codec
from det_contracts.events.scheduler import AllocationAssigned, Part
from det_contracts.events.searcher import ExperimentCreated, RunRequested, TrialCreated
from det_contracts.events.worker import WorkerRegistered
from services.kit.credentials import Authority
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.sealing import sealed, sealer_from
from worker.briefing import Gang, NotToBeFound, read_briefing
from worker.preparing import CannotPrepare, Preparer
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
EXPERIMENT = ExperimentCreated(
    experiment_id=1, user="ann", config={"name": "x"}, original_config="", reason=""
)
TRIAL = TrialCreated(
    trial_id=1, experiment_id=1, request_id="r", task_id="1.t1", seed=7, hparams={}, reason=""
)
RUN = RunRequested(
    trial_id=1,
    experiment_id=1,
    task_id="1.t1",
    allocation_id="1.t1.1",
    run=1,
    slots=6,
    pool="default",
    priority=42,
    reason="",
)


def registered(worker_id, address):
    return WorkerRegistered(
        worker_id=worker_id,
        session="s",
        pool="default",
        address=address,
        version="1",
        slots=(),
        reads_after=0,
        running=(),
    )


def briefings(*workers, of=("a", "b", "c")):
    async def read():
        journal = MemoryLog()
        for number, event in enumerate([EXPERIMENT, TRIAL, RUN, *workers]):
            body = codec.encode(event, id=str(number), actor="test", at=1.0)
            await journal.append(Draft(codec.subject_of(event), body, str(number)))
        return [await read_briefing(journal, ASSIGNED, worker_id) for worker_id in of]

    return asyncio.run(read())


HOSTS = [registered(name, f"10.0.0.{number}") for number, name in enumerate("abc")]


def test_all_nodes_by_rank_whatever_the_order_of_the_parts():
    found = briefings(*HOSTS)
    for rank, briefing in enumerate(found):
        assert briefing.gang == Gang(("10.0.0.0", "10.0.0.1", "10.0.0.2"), (1, 2, 3), rank)
        assert briefing.task.resources_id == f"1.t1.1-{rank}"


def test_where_a_worker_said_last_that_it_is():
    (found,) = briefings(*HOSTS, registered("b", "10.9.9.9"), of=["a"])
    assert found.gang.addresses == ("10.0.0.0", "10.9.9.9", "10.0.0.2")


def test_a_node_that_nobody_knows():
    with pytest.raises(NotToBeFound, match=r"worker\.c\.registered"):
        briefings(*HOSTS[:2], of=["a"])


def test_all_nodes_have_one_token_and_no_other_allocation_has_it(tmp_path):
    signing = tmp_path / "signing.json"

    def preparer(seed):
        signing.write_text(msgspec.json.encode({"account": "A", "seed": seed}).decode())
        return Preparer(WorkerSettings(trial_signing=signing, worker_home=tmp_path), None, tmp_path)

    def token(by, allocation_id):
        (briefing,) = briefings(*HOSTS, of=["a"])
        return by._task_token(msgspec.structs.replace(briefing.task, allocation_id=allocation_id))

    seed, another = (Authority.create().trial_signing_seed for _ in range(2))
    one, other = preparer(seed), preparer(seed)
    assert token(one, "1.t1.1") == token(other, "1.t1.1")
    assert token(one, "1.t1.1") != token(one, "1.t1.2")
    assert token(preparer(another), "1.t1.1") != token(one, "1.t1.1")


def test_secrets_are_opened_for_the_owner_of_the_task_alone(tmp_path):
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    config = {"name": "x", "environment": {"environment_variables": {"cpu": ["A_TOKEN=hush"]}}}
    lying = sealed(config, "ann", sealer_from(key))
    assert "hush" not in str(lying)
    (briefing,) = briefings(*HOSTS, of=["a"])
    trial = msgspec.structs.replace(briefing.task.trial, config=lying)
    briefing = msgspec.structs.replace(
        briefing, config=lying, task=msgspec.structs.replace(briefing.task, trial=trial)
    )
    settings = WorkerSettings(sealing_key=key, worker_home=tmp_path)
    found = Preparer(settings, None, tmp_path)._opened(briefing)
    assert found.config == found.task.trial.config == config
    another = msgspec.structs.replace(briefing, task=msgspec.structs.replace(briefing.task, user="bob"))
    for preparer, told in (
        (Preparer(settings, None, tmp_path), another),
        (Preparer(WorkerSettings(worker_home=tmp_path), None, tmp_path), briefing),
    ):
        with pytest.raises(CannotPrepare, match=r"cpu\.A_TOKEN cannot be opened"):
            preparer.prepare(tmp_path / "run", told, (), 1, set())
