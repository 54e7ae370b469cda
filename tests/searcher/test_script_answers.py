"""What the searcher tells a trial's script about checkpoints."""

import asyncio
from types import SimpleNamespace

import pytest

from det_contracts.commands import Answer
from det_contracts.script_queries import AskMetadata
from services.searcher.script_answers import checkpoint_metadata_handler

REGISTERED = {"mine": 1, "source": 7, "others": 9}
"""Checkpoints and their experiments."""


class Registry:
    """Stands in for the checkpoints service."""

    async def query(self, query):
        return Answer(
            0,
            [
                {"uuid": uuid, "experiment_id": REGISTERED[uuid], "metadata": {"of": uuid}}
                for uuid in query.uuids
                if uuid in REGISTERED
            ],
        )


def metadata_for(uuid, stated=None, source=None):
    """What a trial of experiment 1 is told, whose script has said that it stored `stated`."""
    trial = SimpleNamespace(experiment_id=1, checkpoint=stated, source=source)
    experiment = SimpleNamespace(source_checkpoint="source")
    runner = SimpleNamespace(state=SimpleNamespace(trials={5: trial}, experiments={1: experiment}))
    return asyncio.run(checkpoint_metadata_handler(runner, Registry())(5, AskMetadata(uuid)))


@pytest.mark.parametrize("uuid", ["mine", "source"])
def test_metadata_of_the_experiment_and_of_what_it_starts_from_are_told(uuid):
    assert metadata_for(uuid) == {"of": uuid}


def test_nobody_is_told_of_others_by_saying_that_they_stored_it():
    assert metadata_for("others", stated="others") is None
    # Trials of a search continue from one another, and so from what one of them has said.
    assert metadata_for("others", source="others") is None
    assert metadata_for("absent", stated="absent") is None
