"""A worker is not given up if nobody could have heard from it: scenarios in virtual time."""

import pytest

from det_contracts.events import scheduler
from services.scheduler.heartbeats import POLL_EVERY_S, RECONNECT_WAIT_S
from tests.fixtures.tiers import rest_in_full
from tests.simulation.lab import Lab
from tests.simulation.worker import HEARTBEAT_S

LONG_S = 2 * RECONNECT_WAIT_S


@pytest.fixture(params=rest_in_full(range(3)))
def lab(request):
    with Lab(request.param, agents=5) as made:
        yield made
        made.rest()


@pytest.fixture
def held(lab):
    """An experiment with a trial on each worker, at its gate."""
    experiment, trials = lab.submit("held", slots=4, trials=5)
    lab.until_held(*trials)
    yield lab
    lab.wait(RECONNECT_WAIT_S + HEARTBEAT_S)
    assert lab.events(scheduler.WorkerLost) == []
    lab.open("held")
    lab.finished(experiment)
    assert [lab.runs(trial) for trial in trials] == [1] * 5


@pytest.mark.parametrize("seconds", [31.0, LONG_S])
def test_an_outage_of_the_broker_loses_no_worker(held, seconds):
    held.stop_broker()
    held.wait(seconds)
    held.start_broker()


def test_an_outage_again_and_again_loses_no_worker(held):
    for _ in range(4):
        held.stop_broker()
        held.wait(RECONNECT_WAIT_S / 2)
        held.start_broker()
        held.wait(HEARTBEAT_S / 2)


@pytest.mark.parametrize("away", ["broker", "intake", "scheduler"])
def test_a_worker_that_gets_slots_during_an_outage_keeps_what_it_runs(held, away):
    """It keeps registering until it is answered, and then learns the outcome of all of it."""
    held.stop_broker() if away == "broker" else held.freeze(away)
    held.change_slots(held.workers()[0], 5)
    held.wait(LONG_S)
    held.start_broker() if away == "broker" else held.thaw(away)


def test_a_scheduler_that_was_stopped_blames_nobody(held):
    held.freeze("scheduler")
    held.wait(LONG_S)
    held.thaw("scheduler")


def test_a_scheduler_that_comes_to_lead_listens_first(held):
    for replica in held.world.of("scheduler"):
        held._call_in_loop(replica.lead, False)
    held.wait(LONG_S)
    held._call_in_loop(held.world.of("scheduler")[0].lead, True)


def test_who_registered_while_the_intake_was_away_is_not_lost(held):
    """The scheduler hears a session that it does not know, while the one that it knows is silent."""
    back = held.workers()[0]
    held.freeze("intake")
    held.stop(back)
    held.wait(1)
    held.start(back)
    held.wait(LONG_S)
    held.thaw("intake")


HOUR_S = 3600.0


@pytest.mark.parametrize("how", ["stopped", "without a leader"])
def test_what_is_said_while_the_intake_is_away_for_an_hour_is_heard_after_it(lab, how):
    experiment, trials = lab.submit("busy", slots=4, trials=5)
    lab.until_held(*trials)
    replicas = lab.world.of("intake")
    for replica in replicas:
        replica.process.stop() if how == "stopped" else lab._call_in_loop(replica.lead, False)
    lab.open("busy")
    lab.wait(HOUR_S)
    assert lab.state(experiment) == "ACTIVE"
    for replica in replicas:
        lab._call_in_loop(replica.process.resume)
    lab._call_in_loop(replicas[0].lead, True)
    lab.finished(experiment)
    assert [lab.runs(trial) for trial in trials] == [1] * 5
    assert lab.events(scheduler.WorkerLost) == []


def test_a_worker_that_died_during_an_outage_is_given_up_after_it(lab):
    """The other side: a worker that stays silent once all listen again is given up, in bounded time."""
    gone = lab.workers()[0]
    lab.stop_broker()
    lab.stop(gone)
    lab.wait(LONG_S)
    lab.start_broker()
    lab.wait(RECONNECT_WAIT_S - POLL_EVERY_S)
    assert lab.events(scheduler.WorkerLost) == []
    lab.wait(HEARTBEAT_S + 3 * POLL_EVERY_S + 10)
    assert [e.worker_id for e in lab.events(scheduler.WorkerLost)] == [gone]
