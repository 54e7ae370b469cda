"""Nothing is called late while the facts that may speak against it lie unread in the inbox."""

import asyncio

import pytest

from det_contracts import subjects
from det_contracts.envelope import Recorded
from det_contracts.events import Decision, trial
from services.kit.inbox import RETRY_S, Inbox
from services.kit.log import Draft, OutcomeUnknown
from services.kit.log_memory import MemoryLog


class Lab:
    def __init__(self):
        self.now = 100.0
        self.journal = MemoryLog()
        self.inbox = Inbox(self.journal, lambda: self.now)

    def says(self, number):
        """A script says something; how far the inbox goes now."""
        draft = Draft(subjects.witness_of_trial(1), b"{}", f"m{number}")
        asyncio.run(self.journal.append(draft))

    def is_read(self):
        return asyncio.run(self.inbox.is_fully_folded())

    def intake_reached(self, position):
        decision = Decision(owner=subjects.INTAKE, seen=0, count=0, replica="r", to=position)
        self.inbox.on_folded([Recorded(1, decision, "d", subjects.INTAKE, self.now)])


@pytest.fixture
def lab():
    return Lab()


def test_what_lies_unread_is_waited_for(lab):
    for number in range(3):
        lab.says(number)
    assert not lab.is_read()
    assert lab.inbox.seconds_until(due=0.0) == RETRY_S
    lab.intake_reached(2)
    assert not lab.is_read()
    lab.intake_reached(3)
    assert lab.is_read()


def test_a_fact_that_was_admitted_counts_as_read(lab):
    lab.says(1)
    fact = trial.Progressed(trial_id=1, run=1, units=1.0)
    lab.inbox.on_folded([Recorded(2, fact, "f", "trial:1", lab.now, witness=1)])
    assert lab.is_read()


def test_while_the_broker_does_not_say_how_far_it_goes_nothing_is_late(lab, monkeypatch):
    async def away(stream):
        raise OutcomeUnknown("away")

    monkeypatch.setattr(lab.journal, "bounds", away)
    assert not lab.is_read()
