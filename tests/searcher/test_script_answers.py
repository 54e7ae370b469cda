"""What the searcher tells a trial's script about checkpoints."""

import asyncio
from types import SimpleNamespace

import pytest

from det_contracts import subjects
from det_contracts.commands import Answer
from det_contracts.problems import unavailable
from det_contracts.queries import BestValidation
from det_contracts.script_queries import AskBest, AskMetadata
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.searcher.script_answers import best_validation_handler, checkpoint_metadata_handler

REGISTERED = {"mine": 1, "source": 7, "others": 9}
"""Checkpoints and their experiments."""


class Registry:
    """Stands in for the checkpoints service."""

    async def query(self, query, *, min_position=0, stream="CONTROL"):
        return Answer(
            0,
            [
                {"uuid": uuid, "experiment_id": REGISTERED[uuid], "metadata": {"of": uuid}}
                for uuid in query.uuids
                if uuid in REGISTERED
            ],
        )


class Folded:
    """Stands in for the searcher's runner, which has folded all of CONTROL at the time it is asked."""

    def __init__(self, state, log=None):
        self.state, self._log, self.waited = state, log, []
        self.positions = {"CONTROL": 0}

    async def wait_for_position(self, position, stream):
        self.waited.append((stream, position))


class Behind:
    """Stands in for an owner that has not read what scripts write: it answers only what needs no position."""

    def __init__(self):
        self.questions = []

    async def query(self, query, *, min_position=0, stream="CONTROL"):
        self.questions.append((stream, min_position))
        if min_position:
            raise unavailable("not there yet")
        return Answer(0, 0.5 if isinstance(query, BestValidation) else [])


async def answer_after_writes(handler_of, question):
    """What a script of trial 5 is told after it wrote to each stream, and how others were asked for it."""
    log, owner = MemoryLog(), Behind()
    for n, subject in enumerate((subjects.reports(4), subjects.reports(5), subjects.reports(6))):
        await log.append(Draft(subject, b"{}", f"r{n}"))
    await log.append(Draft(subjects.witness_of_trial(5), b"{}", "w"))
    await log.append(Draft("control.checkpoints.checkpoint.u.metadata_set", b"{}", "c"))
    runner = Folded(SimpleNamespace(trials={5: SimpleNamespace(experiment_id=1)}, experiments={}))
    return await handler_of(runner, owner, log)(5, question), owner.questions, runner.waited


def test_the_best_validation_counts_what_the_script_reported_and_no_service_that_is_behind_fails_it():
    best, questions, _ = asyncio.run(
        answer_after_writes(best_validation_handler, AskBest(smaller_is_better=True))
    )
    assert (best, questions) == (0.5, [("REPORTS", 2), ("CONTROL", 0)])


def test_metadata_is_as_of_what_the_script_stated_and_changed():
    metadata, questions, waited = asyncio.run(
        answer_after_writes(checkpoint_metadata_handler, AskMetadata("u"))
    )
    assert (metadata, questions) == (None, [("CONTROL", 1), ("CONTROL", 0)])
    assert waited == [("WITNESS", 1)]


def metadata_for(uuid, stated=None, source=None):
    """What a trial of experiment 1 is told, whose script has said that it stored `stated`."""
    trial = SimpleNamespace(experiment_id=1, checkpoint=stated, source=source)
    experiment = SimpleNamespace(source_checkpoint="source")
    state = SimpleNamespace(trials={5: trial}, experiments={1: experiment})
    return asyncio.run(
        checkpoint_metadata_handler(Folded(state), Registry(), MemoryLog())(5, AskMetadata(uuid))
    )


@pytest.mark.parametrize("uuid", ["mine", "source"])
def test_metadata_of_the_experiment_and_of_what_it_starts_from_are_told(uuid):
    assert metadata_for(uuid) == {"of": uuid}


def test_nobody_is_told_of_others_by_saying_that_they_stored_it():
    assert metadata_for("others", stated="others") is None
    # Trials of a search continue from one another, and so from what one of them has said.
    assert metadata_for("others", source="others") is None
    assert metadata_for("absent", stated="absent") is None
