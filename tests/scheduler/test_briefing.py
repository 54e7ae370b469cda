"""What a run is to do is gathered from the log, and what was folded lately is not read again for it."""

import asyncio

import pytest
from msgspec.structs import replace

from det_contracts import codec, subjects
from det_contracts.envelope import Recorded
from det_contracts.events.scheduler import AllocationAssigned
from det_contracts.events.searcher import ExperimentCreated, RunRequested, TrialCreated
from det_contracts.orders import Gang
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.scheduler import briefing
from services.scheduler.briefing import Facts, read_briefing

ALONE = Gang(("at-w",), (1,))


def experiment(id):
    return ExperimentCreated(experiment_id=id, user="ann", config={"n": id}, original_config="", reason="")


def trial(id):
    names = {"request_id": "r", "task_id": f"{id}.r"}
    return TrialCreated(trial_id=id, experiment_id=1, seed=id, hparams={"lr": 0.1}, reason="", **names)


def requested(id, run):
    names = {"task_id": f"{id}.r", "allocation_id": f"{id}.r.{run}"}
    return RunRequested(
        trial_id=id,
        experiment_id=1,
        run=run,
        slots=1,
        pool="default",
        priority=42,
        steps_completed=run,
        reason="",
        **names,
    )


def assigned(id, run):
    names = {"task_id": f"{id}.r", "allocation_id": f"{id}.r.{run}"}
    return AllocationAssigned(
        kind="TRIAL", parts=(), trial_id=id, experiment_id=1, run=run, reason="", **names
    )


class Counted(MemoryLog):
    """Tells what it was asked for."""

    def __init__(self):
        super().__init__()
        self.subjects = []

    async def last(self, subject):
        self.subjects.append(subject)
        return await super().last(subject)

    async def say(self, *events):
        """Append; returns them as a service folds them."""
        received = []
        for event in events:
            id = f"e{len(self.streams[subjects.CONTROL])}"
            body = codec.encode(event, id=id, actor="test", at=1.0)
            position = await self.append(Draft(codec.subject_of(event), body, id))
            received.append(Recorded(position, event, id, "test", 1.0, ""))
        return received


def test_what_was_folded_is_not_read_again():
    async def work():
        log = Counted()
        facts = Facts(log, span_of={"e5": "span"}.get)
        story = [experiment(1), trial(5), requested(5, 1), assigned(5, 1), requested(5, 2), assigned(5, 2)]
        facts.on_folded(await log.say(*story))
        folded_briefing = await read_briefing(facts, "5.r.2", ALONE)
        assert (
            folded_briefing.config,
            folded_briefing.trial.seed,
            folded_briefing.trial.steps_completed,
        ) == ({"n": 1}, 5, 2)
        # The span that it was decided in is no part of the event.
        assert folded_briefing.trace == "span"
        assert log.subjects == []
        # Whoever has just begun to lead reads, and comes to the same.
        assert await read_briefing(Facts(log), "5.r.2", ALONE) == replace(folded_briefing, trace="")
        assert len(log.subjects) == 4

    asyncio.run(work())


def test_what_is_said_once_is_read_once_and_what_is_said_again_each_time():
    async def work():
        log = Counted()
        facts = Facts(log)
        await log.say(experiment(1), trial(5), requested(5, 1), assigned(5, 1))
        assert (await read_briefing(facts, "5.r.1", ALONE)).trial.run == 1
        log.subjects.clear()
        # Not folded here yet: a newer request is found all the same.
        await log.say(requested(5, 2), assigned(5, 2))
        assert (await read_briefing(facts, "5.r.2", ALONE)).trial.run == 2
        assert log.subjects == [
            subjects.control("scheduler.allocation.assigned", "5.r.2"),
            subjects.control("searcher.trial.run_requested", 5),
        ]

    asyncio.run(work())


@pytest.mark.parametrize("kind", [ExperimentCreated, TrialCreated, RunRequested, AllocationAssigned])
def test_only_so_much_is_remembered(kind, monkeypatch):
    async def work():
        log = Counted()
        facts = Facts(log)
        made = {
            ExperimentCreated: experiment,
            TrialCreated: trial,
            RunRequested: lambda id: requested(id, 1),
            AllocationAssigned: lambda id: assigned(id, 1),
        }
        key = "{}.r.1".format if kind is AllocationAssigned else int
        facts.on_folded(await log.say(*(made[kind](id) for id in range(1, 6))))
        assert [await facts.last(kind, key(id)) for id in (3, 4, 5)] == [made[kind](id) for id in (3, 4, 5)]
        assert log.subjects == []
        assert await facts.last(kind, key(1)) == made[kind](1)
        assert len(log.subjects) == 1

    monkeypatch.setitem(briefing.REMEMBERED, kind, 3)
    asyncio.run(work())
