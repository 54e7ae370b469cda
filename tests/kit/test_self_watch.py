"""A process that watches itself: what it says of each kind of trouble, and for which it ends."""

from types import SimpleNamespace

import pytest

from services.kit.cluster_monitor import LEASES, NO_LEADER_S, OWNERS, STREAMS, ClusterReport, StreamReport
from services.kit.lag import SAVING, Lag
from services.kit.process_metrics import Measures
from services.kit.self_watch import MAX_ROUND_S, SAVING_LIMIT_FACTOR, SelfWatch, WatchSources
from services.kit.settings import ServiceSettings
from services.kit.standstill import Failed
from services.local.supervisor import SERVICES

STUCK_S = 60.0
LAGS_S = 5.0
WELL = ClusterReport({name: StreamReport(last=7) for name in STREAMS}, OWNERS)


class World:
    """A service and what surrounds it, on a clock that only `run` moves; a well one to begin with."""

    decision_progress = False, 0

    def __init__(self, *, reads_all=True):
        self.now = 1000.0
        self.connected = True
        self.report = WELL
        self.starting = self.failing = ""
        self.refusals = {}
        self.parked = {}
        self.failed = None
        self.saves = True
        self.folded = self.saved = 7
        self.feed, self.saving = (Lag(lambda: self.now, lambda: 0.0) for _ in range(2))
        self.ended = []
        settings = ServiceSettings(stuck_s=STUCK_S, log_lags_s=LAGS_S)
        self.watch = SelfWatch("searcher", settings, Measures("searcher"), self.ended.append)
        self.watch._control_lag = Lag(lambda: self.now, lambda: 0.0)
        self.facts = WatchSources(
            connection=self,
            look=SimpleNamespace(),
            starting=lambda: self.starting,
            lag=lambda: {"CONTROL": self.feed, SAVING: self.saving},
            position=lambda name: self.saved if name == SAVING else self.folded,
            reads_all=reads_all,
            refusals=lambda: self.refusals,
            failing=lambda: self.failing,
            parked=lambda: self.parked,
            failed=lambda: self.failed,
            saves=lambda: self.saves,
            decision_progress=lambda: self.decision_progress,
        )

    is_connected = property(lambda self: self.connected)

    def run(self, seconds, each=lambda: None):
        """So long, a look each second; returns what is wrong at the end."""
        for _ in range(round(seconds)):
            self.now += 1.0
            each()
            self.facts.look.last = self.report
            self.watch.check(self.facts, self.now)
        return {(trouble.condition, trouble.about) for trouble in self.watch.conditions.current()}

    def without(self, *owners):
        self.report = ClusterReport(WELL.streams, tuple(owner for owner in OWNERS if owner not in owners))


@pytest.fixture
def world():
    return World()


def test_each_service_is_to_be_led():
    assert set(OWNERS) == set(SERVICES)


def test_nothing_is_wrong_with_what_works(world):
    assert world.run(1000) == set()
    assert world.ended == []


def test_it_knows_how_far_it_has_read_and_saved(world):
    def falls_behind():
        world.feed.set_total(12)
        world.feed.set_done(7)
        world.saving.set_total(7)
        world.saving.set_done(4)

    world.saved = 4
    world.run(3, falls_behind)
    control, saving = world.watch.progress
    assert (control.name, control.position, control.behind) == ("CONTROL", 7, 5)
    assert (saving.name, saving.position, saving.behind) == (SAVING, 4, 3)
    assert control.late_s == saving.late_s == 2.0
    world.saves = False
    world.run(1)
    # Who does not save is not behind with it.
    assert [progress.name for progress in world.watch.progress] == ["CONTROL"]


def test_nobody_leads_once_a_lease_was_free_for_longer_than_a_change_takes(world):
    world.without("searcher", "metrics")
    assert world.run(NO_LEADER_S) == set()
    assert world.run(1) == {("nobody_leads", "searcher"), ("nobody_leads", "metrics")}
    world.without("metrics")
    assert world.run(1) == {("nobody_leads", "metrics")}
    world.report = WELL
    assert world.run(1) == set()
    assert world.ended == []


def test_where_the_leases_cannot_be_read_nobody_leads(world):
    world.report = ClusterReport({**WELL.streams, LEASES: StreamReport(problem="no leader")}, ())
    troubles = world.run(10)
    assert troubles == {("stream_refuses", LEASES)} | {("nobody_leads", owner) for owner in OWNERS}
    words = [trouble.message for trouble in world.watch.conditions.current() if trouble.about == "searcher"]
    assert words == ["no searcher replica leads: the leases cannot be read"]


def test_a_replica_that_is_not_current(world):
    late = StreamReport(last=7, replicas=("nats-2 is offline",))
    world.report = ClusterReport({**WELL.streams, "CONTROL": late}, OWNERS)
    assert world.run(5) == set()
    assert world.run(10) == {("replica_behind", "CONTROL")}
    (trouble,) = world.watch.conditions.current()
    assert "nats-2 is offline" in trouble.message


def test_a_full_stream_is_reported_at_once_quoting_the_broker(world):
    world.refusals = {"LOGS": "no space left on device"}
    assert world.run(1) == {("stream_refuses", "LOGS")}
    (trouble,) = world.watch.conditions.current()
    assert "(no space left on device)" in trouble.line()
    assert "space" not in trouble.message
    world.run(10 * STUCK_S)
    assert world.ended == []
    world.refusals = {}
    assert world.run(1) == set()


def test_a_broker_that_is_away_ends_nobody_however_long_and_whatever_is_left(world):
    world.feed.set_total(100)
    world.saving.set_total(3)
    world.connected = False
    assert world.run(10 * STUCK_S) == {("broker_away", "")}
    world.connected = True
    world.feed.set_done(100)
    world.saving.set_done(3)
    assert world.run(1) == set()
    assert world.ended == []


def test_a_broker_that_is_there_and_says_nothing_ends_nobody(world):
    world.feed.set_total(100)
    for report in (
        None,
        ClusterReport({**WELL.streams, "CONTROL": StreamReport(problem="no answer")}, OWNERS),
    ):
        world.report = report
        world.run(5 * STUCK_S)
    assert world.ended == []


def test_a_failing_database_is_reported_and_does_not_end_the_process(world):
    world.failing = "connection refused at 10.0.0.7"
    world.saving.set_total(5)
    world.feed.set_total(100)
    assert ("database_fails", "") in world.run(20 * STUCK_S)
    assert world.ended == []
    (trouble,) = [
        trouble for trouble in world.watch.conditions.current() if trouble.condition == "database_fails"
    ]
    assert "10.0.0.7" in trouble.line()
    assert "10.0.0.7" not in trouble.message


def test_stalled_reading_is_reported_and_then_ends_the_process(world):
    world.feed.set_total(100)
    assert world.run(LAGS_S + 1) == {("log_lags", "CONTROL")}
    world.run(STUCK_S - LAGS_S - 1)
    assert world.ended == []
    world.run(2)
    assert world.ended
    assert world.ended[0].startswith("CONTROL has made no progress for 6")


def test_so_does_reading_that_only_believes_to_be_at_the_end(world):
    world.report = ClusterReport({**WELL.streams, "CONTROL": StreamReport(last=8)}, OWNERS)
    assert world.feed.left == 0
    assert world.run(LAGS_S + 2) == {("log_lags", "CONTROL")}
    world.run(STUCK_S)
    assert world.ended


def test_who_reads_a_part_of_the_log_is_not_measured_by_its_end():
    world = World(reads_all=False)
    world.report = ClusterReport({**WELL.streams, "CONTROL": StreamReport(last=800)}, OWNERS)
    assert world.run(2 * STUCK_S) == set()
    assert world.ended == []


def test_who_is_behind_and_gets_on_lives(world):
    world.feed.set_total(10**6)

    def slowly():
        # One event in almost as long as it may stand still.
        world.folded += world.now % 50 == 0

    assert world.run(10 * STUCK_S, slowly) == {("log_lags", "CONTROL")}
    assert world.ended == []


def test_who_catches_up_after_a_start_lags_nothing_and_ends_only_when_it_stands_still(world):
    world.starting = "folding the log"
    world.feed.set_total(10**6)

    def quickly():
        world.folded += 1000

    assert world.run(10 * STUCK_S, quickly) == {("starting", "")}
    assert world.ended == []
    world.run(STUCK_S + 1)
    assert world.ended


def test_saving_that_stands_still_is_given_longer(world):
    world.saving.set_total(3)
    assert world.run(SAVING_LIMIT_FACTOR * STUCK_S) == {("log_lags", SAVING)}
    assert world.ended == []
    world.run(2)
    assert world.ended


def test_who_leaves_saving_to_the_leader_is_not_ended_for_it(world):
    world.saves = False
    world.saving.set_total(3)
    world.run(10 * SAVING_LIMIT_FACTOR * STUCK_S)
    assert world.ended == []


def test_stalled_decisions_are_reported_and_then_end_the_process(world):
    world.decision_progress = True, 3
    assert world.run(MAX_ROUND_S) == set()
    assert world.run(2) == {("decisions_stand_still", "")}
    world.decision_progress = True, 4
    assert world.run(1) == set()
    world.run(max(STUCK_S, MAX_ROUND_S))
    assert world.ended == []
    world.run(2)
    assert world.ended


@pytest.mark.parametrize("why", ["broker", "stream", "nothing"])
def test_nobody_is_blamed_for_decisions_that_something_else_keeps(world, why):
    world.decision_progress = why != "nothing", 3
    world.connected = why != "broker"
    if why == "stream":
        world.report = ClusterReport({**WELL.streams, "CONTROL": StreamReport(problem="no leader")}, OWNERS)
    troubles = world.run(10 * max(STUCK_S, MAX_ROUND_S))
    assert "decisions_stand_still" not in {condition for condition, _ in troubles}
    assert world.ended == []


def test_a_blocked_loop_is_reported_at_once_and_then_ends_the_process(world):
    world.watch.on_loop_check(0.6)
    assert [trouble.condition for trouble in world.watch.conditions.current()] == ["loop_blocked"]
    world.watch.on_loop_check(0.0)
    assert world.watch.conditions.current() == []
    world.watch.on_loop_check(STUCK_S)
    assert world.ended == []
    world.watch.on_loop_check(STUCK_S + 0.1)
    assert world.ended


def test_with_a_setting_of_0_nothing_ends_it(world):
    settings = ServiceSettings(stuck_s=0.0)
    world.watch = SelfWatch("searcher", settings, Measures("searcher"), world.ended.append)
    world.feed.set_total(100)
    world.run(10 * STUCK_S)
    world.watch.on_loop_check(10 * STUCK_S)
    assert world.ended == []


def test_who_stands_still_at_an_event_tells_which_and_is_not_restarted_for_it(world):
    world.failed = Failed("CONTROL", 8, "control.trial.7.progressed", "KeyError(7)")
    world.feed.set_total(100)
    assert ("event_fails", "CONTROL 8 control.trial.7.progressed") in world.run(10 * STUCK_S)
    (trouble,) = [
        trouble for trouble in world.watch.conditions.current() if trouble.condition == "event_fails"
    ]
    assert (trouble.message, trouble.detail) == ("it stands still at event 8 of CONTROL", "KeyError(7)")
    assert world.ended == []
    world.failed = None
    assert "event_fails" not in {kind for kind, _ in world.run(1)}


def test_a_parked_record_is_reported_until_it_can_be_decided():
    world = World()
    world.parked = {"trials 12": "too large"}
    assert world.run(1) == {("decisions_parked", "trials 12")}
    (trouble,) = world.watch.conditions.current()
    assert (trouble.message, trouble.detail) == ("nothing can be decided about trials 12", "too large")
    world.parked = {}
    assert world.run(1) == set()
    assert world.ended == []
