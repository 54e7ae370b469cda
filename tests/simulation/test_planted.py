"""Bugs planted on purpose: a simulation that does not find these proves nothing."""

import dataclasses
from itertools import chain

import msgspec
import pytest

from det_contracts import subjects
from det_contracts.events import scheduler, searcher, trial
from services.catalogue.catalogue import Catalogue
from services.intake.relay import Relay
from services.kit.decider import Decider
from services.kit.log import Fence
from services.kit.log_memory import MemoryLog
from services.kit.quotas import limits
from services.kit.rounds import Round
from services.kit.suspension import SuspensionDetector
from services.provisioner import plan
from services.scheduler.domain import State, hosts, provisioned
from services.scheduler.domain.admission import AdmissionPass
from services.searcher import verdict
from services.searcher.app import FOLD
from services.searcher.methods.ranking import Ranking
from tests.simulation import simulate, world
from tests.simulation.line import Line
from tests.simulation.plan import KINDS

ENOUGH = 1000
LONG = pytest.mark.full


def dropped_fence(patch):
    """The log accepts a batch from any sender."""
    append_batch = MemoryLog.append_batch

    async def unfenced(self, drafts, *, fence):
        newest = await self.last(fence.subject)
        return await append_batch(self, drafts, fence=Fence(fence.subject, newest.position if newest else 0))

    patch.setattr(MemoryLog, "append_batch", unfenced)


def double_restart_count(patch):
    """A failure counts twice."""
    failed = verdict._failed

    def twice(*args):
        event = failed(*args)
        if isinstance(event, searcher.RunEnded):
            return msgspec.structs.replace(event, restarts=event.restarts + 1)
        return event

    patch.setattr(verdict, "_failed", twice)


def lost_preemption_ack(patch):
    """Nobody learns that the coming exit is intended."""
    patch.setitem(FOLD.functions, trial.PreemptionAcknowledged, lambda state, recorded: ())


def tie_the_wrong_way(patch):
    """Of two equal results, the later one is ahead."""
    position = Ranking.position

    def turned(self, metric, *, before_equals=False):
        return position(self, metric, before_equals=not before_equals)

    patch.setattr(Ranking, "position", turned)


def slot_freed_too_early(patch):
    """An allocation that is to be killed counts as gone."""
    react = world.SCHEDULER.react

    def hasty(state, key):
        events = list(react(state, key))
        killed = [e.allocation_id for e in events if isinstance(e, scheduler.KillRequested)]
        return events + [_ended(state.allocations[id]) for id in killed]

    patch.setattr(world, "SCHEDULER", dataclasses.replace(world.SCHEDULER, react=hasty))


def _ended(allocation):
    return scheduler.AllocationEnded(
        allocation_id=allocation.id,
        kind=allocation.kind,
        trial_id=allocation.trial_id,
        run=allocation.run,
        outcome="killed",
        reason="planted",
    )


def stale_read(patch):
    """The newest message on a subject is read from any broker, even one that lags."""

    async def last(self, subject):
        messages = self._disk.streams[subjects.CONTROL]
        end = len(messages) if self.server.lags_at is None else self.server.lags_at[subjects.CONTROL]
        return next((m for m in reversed(messages[:end]) if m.subject == subject), None)

    patch.setattr(Line, "last", last)
    # Such a world never comes to rest: ten times the usual need is enough to see it.
    patch.setattr(simulate, "PEACE_S", 3_000.0)


def rounds_without_end(patch):
    """A round holds everything that is due, whatever the broker's limits."""
    patch.setattr(Round, "fits", lambda self, more: True)
    patch.setattr(Round, "fitting", lambda self, more: more)


def unknown_is_failed(patch):
    """If the broker did not answer, a command is decided again, although it may be in the log."""
    patch.setattr(Decider, "read_back", lambda self, decision: None)


def stopped_unnoticed(patch):
    """A process that was stopped executes a command from long ago."""
    patch.setattr(SuspensionDetector, "was_suspended", lambda self: False)


def second_worker_taken(patch):
    """A worker is registered although another one has its id."""
    patch.setattr(hosts, "is_different_worker", lambda *_: False)


def taken_over_without_a_look(patch):
    """An intake that takes over continues after the last decision without looking at later facts."""

    async def believed(self, *until):
        return None

    patch.setattr(Relay, "_read_back", believed)


def beyond_quotas(patch):
    """An admitted allocation is not counted for those after it."""
    patch.setattr(AdmissionPass, "_has_room", lambda self, lane: True)
    patch.setattr(limits, "usage_of", lambda state, usage, holders=None: dict.fromkeys(state.quotas, 0))


def shown_before_it_is_read(patch):
    """A gateway asks where the log ends, and answers before it has read that far."""

    async def hasty(self):
        return await self._log_end.position() > 0

    patch.setattr(Catalogue, "catch_up", hasty)


def work_for_who_is_given_back(patch):
    """A worker that registers again gets work, even if its pool is returning it."""
    patch.setattr(provisioned, "is_released", lambda state, worker_id: False)
    put_worker = State.put_worker
    forget = lambda self, worker: put_worker(self, msgspec.structs.replace(worker, released=False))  # noqa: E731
    patch.setattr(State, "put_worker", forget)


def idle_however_busy(patch):
    """Nobody checks whether a worker has work."""
    patch.setattr(provisioned, "is_busy", lambda state, worker_id: False)


def strays_left_alone(patch):
    """What an engine runs and nobody wants is not stopped."""
    patch.setattr(plan, "_number", lambda id, pool: 0)


def repeated_registration_taken(patch):
    """A registration that the broker stores twice begins another session."""
    patch.setattr(hosts, "remember_session", lambda sessions, session: ())


def decided_on_what_it_has(patch):
    """Commands are decided without a look at where the log ended when they arrived."""

    async def believed(self, stream, *, after):
        return after

    patch.setattr(Line, "end", believed)


PLANTED = [
    (work_for_who_is_given_back, "gives_nothing_to_who_is_given_back", (), 40),
    (idle_however_busy, "nobody_works_there", (), 15),
    (strays_left_alone, "nothing runs that nobody asked for", (), 40),
    (shown_before_it_is_read, "reads follow what was answered", (), 26),
    (beyond_quotas, "keeps_to_quotas", (), 8),
    (taken_over_without_a_look, "admitted_once_and_in_order", (), 1),
    (dropped_fence, None, (), 28),
    (double_restart_count, "run_is_judged_by_the_table", (), 0),
    (lost_preemption_ack, "run_is_judged_by_the_table", (), 0),
    (tie_the_wrong_way, "equals_tie_in_order_of_arrival", (), 3),
    (slot_freed_too_early, "ends_when_all_parts_are_gone", (), 2),
    pytest.param(stopped_unnoticed, "a call is not obeyed late", ("stopped", "users"), 33, marks=LONG),
    pytest.param(stale_read, None, (), 6, marks=LONG),
    (rounds_without_end, None, (), 1),
    (unknown_is_failed, "a call is obeyed once", ("losses", "users"), 11),
    (second_worker_taken, None, (), 9),
    (repeated_registration_taken, "ends_when_all_parts_are_gone", (), 11),
    (decided_on_what_it_has, "decisions follow what was there", (), 0),
]
"""Each with the invariant that finds it, the kinds of trouble that it takes (none: all), and a seed.

The seed was the first that found it when it was noted: the search starts there, and continues with others.
"""


@pytest.mark.parametrize(
    ("plant", "found_by", "kinds", "first"), PLANTED, ids=lambda x: getattr(x, "__name__", None)
)
def test_a_planted_bug_is_found(plant, found_by, kinds, first, monkeypatch):
    plant(monkeypatch)
    off = [kind for kind in KINDS if kinds and kind not in kinds]
    worse = {"losses": 0.2, "user_every_s": 1.0} if "losses" in kinds else {}
    runs = (simulate.simulate(seed, off, **worse) for seed in chain(range(first, ENOUGH), range(first)))
    failed_run = next((run for run in runs if run.violation is not None), None)
    assert failed_run is not None, f"{plant.__doc__} And nobody noticed in {ENOUGH} seeds."
    assert found_by in (None, getattr(failed_run.violation, "name", "")), failed_run.story
    assert f"--first {failed_run.seed}" in failed_run.story
