"""Trials in the batch of their experiment (decision 91): it can be folded whatever is stored before it."""

import asyncio

import pytest

from det_contracts import codec, subjects
from det_contracts.commands import CreateExperiment
from det_contracts.events import Decision, searcher, trial
from det_contracts.expconf import complete
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.rules import Call
from services.searcher.app import RULES
from tests.fixtures.waiting import until
from tests.kit.running_runner import running_runner
from tests.searcher.conftest import STORAGE

GROWING = {"name": "adaptive_asha", "max_length": 16, "max_trials": 8, "max_concurrent_trials": 2}
SINGLE = {"name": "single", "max_length": 10}


class InterruptedLog(MemoryLog):
    """A log into which others write just before the next batch is stored."""

    before_next = ()

    async def append_batch(self, drafts, *, fence):
        facts, self.before_next = self.before_next, ()
        for number, fact in enumerate(facts):
            id = f"fact-{self.streams[subjects.CONTROL][-1].position}-{number}"
            await self.append(Draft(codec.subject_of(fact), codec.encode(fact, id=id, actor="t", at=0.0), id))
        return await super().append_batch(drafts, fence=fence)


def creation(search):
    text = {
        "entrypoint": "python3 train.py",
        "searcher": {"metric": "loss", **search},
        "hyperparameters": {"lr": {"type": "double", "minval": 0, "maxval": 1}},
        "checkpoint_storage": STORAGE,
    }
    config = complete(text, seed=7, name="test")
    return CreateExperiment(user="ann", config=config, original_config="", activate=True)


def created_trials(log):
    events = [codec.decode(m.body, m.position).event for m in log.streams[subjects.CONTROL]]
    return [(e.trial_id, e.experiment_id) for e in events if isinstance(e, searcher.TrialCreated)]


async def running_trial(runner):
    """The first trial, once its run is requested."""
    await until(lambda: 1 in runner.state.trials and runner.state.trials[1].allocation_id is not None)
    return runner.state.trials[1]


def completion(stored_trial):
    return trial.OperationCompleted(
        trial_id=stored_trial.id,
        run=stored_trial.run,
        seq=stored_trial.seq,
        length=stored_trial.length,
        metric=0.5,
    )


def are_all_announced(runner, experiment_id):
    trials = list(runner.state.trials_of(experiment_id))
    return bool(trials) and all(stored_trial.announced for stored_trial in trials)


@pytest.mark.parametrize("is_interrupted", [True, False])
def test_a_search_that_opens_a_trial_before_the_batch_is_stored_takes_no_id_of_it(is_interrupted):
    async def story():
        log = InterruptedLog()
        async with running_runner(log, RULES) as runner:
            await runner.command(creation(GROWING), Call("c-1", 0.0))
            fact = completion(await running_trial(runner))
            if is_interrupted:
                log.before_next = [fact]
            await runner.command(creation(SINGLE), Call("c-2", 0.0))
            await until(lambda: all(are_all_announced(runner, id) for id in (1, 2)))
        return created_trials(log)

    expected = [(1, 1), (2, 1), *([(3, 1), (4, 2)] if is_interrupted else [(3, 2)])]
    assert sorted(asyncio.run(story())) == expected


def test_the_first_experiment_and_its_trials_are_one_batch():
    async def story():
        log = MemoryLog()
        async with running_runner(log, RULES, stopwatch=lambda: 0.0) as runner:
            await runner.command(creation(GROWING), Call("c-1", 0.0))
            await running_trial(runner)
        return [codec.decode(m.body, m.position).event for m in log.streams[subjects.CONTROL]]

    events = asyncio.run(story())
    assert sum(isinstance(event, Decision) for event in events) == 1
    assert sum(isinstance(event, searcher.RunRequested) for event in events) == 2
