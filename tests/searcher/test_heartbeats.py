"""Whom the watch beside the searcher takes for silent: replicas that start, lead, follow and stand still."""

import asyncio
import contextlib
import functools
from types import SimpleNamespace
from unittest import mock

import pytest

from det_contracts import codec, subjects
from det_contracts.commands import CreateExperiment, CreateTrial, EndTrial, OpenRun
from det_contracts.events import Decision, searcher
from det_contracts.expconf import complete
from services.kit import listening
from services.kit.log import OutcomeUnknown
from services.kit.log_memory import MemoryLog
from services.kit.process_metrics import Measures
from services.kit.rules import Call, dump
from services.kit.runner import Runner
from services.kit.saver import NullSaver
from services.searcher import heartbeats
from services.searcher.app import RULES
from services.searcher.unmanaged import ReportScriptSilent
from tests.searcher.listening import Listener
from tests.simulation.loop import run

PATIENCE_S = 300.0
BEAT_S = 60.0
DAY_S = 86_400.0
EPOCH = 1_700_000_000.0
CONFIG = complete(
    {
        "searcher": {"name": "single", "metric": "loss", "max_length": 100},
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
    },
    seed=7,
    name="outside",
    managed=False,
)


class Replica:
    """A searcher with its watch: the real loop over a log, in virtual time."""

    def __init__(self, cluster, *, leads):
        self.cluster, self.leads, self.on_heartbeat = cluster, leads, None
        self.runner = Runner(
            RULES, cluster.journal, NullSaver(RULES.state), is_leader=lambda: self.leads, clock=cluster.time
        )
        parts = SimpleNamespace(
            connection=SimpleNamespace(subscribe=self._subscribe),
            journal=cluster.journal,
            is_leader=lambda: self.leads,
            measures=Measures("searcher"),
            runner=self.runner,
        )
        cluster.replicas.append(self)
        begin = asyncio.get_running_loop().create_task
        self.tasks = [begin(self.runner.run()), begin(heartbeats.monitor_heartbeats(parts))]

    async def _subscribe(self, subject, cb):
        assert subject == "alive.*"
        self.on_heartbeat = cb

    async def command(self, command):
        await self.runner.ready.wait()
        # Whether this user may ask for it is tried by itself.
        return (await self.runner.command(command, Call("c", self.cluster.time())))[1]

    async def stop(self):
        self.cluster.replicas.remove(self)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class Cluster:
    """Replicas over one log, and the script of one trial."""

    def __init__(self):
        self.journal, self.replicas, self.lives = MemoryLog(), [], True

    def time(self):
        return EPOCH + asyncio.get_running_loop().time()

    async def begin(self):
        """A replica that leads, and a run of trial 1 that beats."""
        first = Replica(self, leads=True)
        create = CreateExperiment(
            user="determined", config=CONFIG, original_config="", unmanaged=True, request_key=":mine"
        )
        await first.command(create)
        made = {"experiment_id": 1, "request_id": "t", "hparams": {}, "user": "determined"}
        await first.command(CreateTrial(**made))
        await first.command(OpenRun(trial_id=1, resume=True, user="determined"))
        asyncio.get_running_loop().create_task(self._beat())
        return first

    async def _beat(self):
        message = SimpleNamespace(subject=subjects.script_heartbeat(1), data=b"1")
        while True:
            for replica in self.replicas if self.lives else ():
                if replica.on_heartbeat is not None:
                    await replica.on_heartbeat(message)
            await asyncio.sleep(BEAT_S)

    def recorded(self, *kinds):
        """Events of these kinds in the log, with their times."""
        stored = [codec.decode(m.body, m.position) for m in self.journal.streams[subjects.CONTROL]]
        return [
            (type(record.event), record.at - EPOCH) for record in stored if isinstance(record.event, kinds)
        ]

    @property
    def size(self):
        return len(self.journal.streams[subjects.CONTROL])

    @property
    def trial(self):
        return self.replicas[0].runner.state.trials[1].state


def played(test):
    """A test as a coroutine over a `Cluster`, in virtual time."""

    @functools.wraps(test)
    def play():
        async def story():
            loop = asyncio.get_running_loop()
            clock = SimpleNamespace(time=lambda: EPOCH + loop.time())
            with (
                mock.patch.object(heartbeats, "time", clock),
                mock.patch.object(listening, "time", clock),
                mock.patch.object(heartbeats, "since_boot", loop.time),
                contextlib.ExitStack() as stack,
            ):
                cluster = Cluster()
                stack.callback(
                    lambda: [task.cancel() for replica in cluster.replicas for task in replica.tasks]
                )
                await test(cluster)

        run(story())

    del play.__wrapped__
    return play


@played
async def test_a_script_that_falls_silent_is_lost_and_one_that_is_back_goes_on(cluster):
    await cluster.begin()
    await asyncio.sleep(1000)
    assert cluster.trial == "ACTIVE"
    cluster.lives = False
    # Its last sign of life came at 960.
    await asyncio.sleep(255)
    assert cluster.trial == "ACTIVE"
    await asyncio.sleep(10)
    assert cluster.trial == "ERROR"
    ((_, lost_at),) = cluster.recorded(searcher.TrialEnded)
    assert 960 + PATIENCE_S < lost_at < 960 + PATIENCE_S + 3 * heartbeats.POLL_EVERY_S
    await asyncio.sleep(10_000)
    quiet = cluster.size
    cluster.lives = True
    await asyncio.sleep(BEAT_S + 5)
    assert cluster.trial == "ACTIVE"
    assert len(cluster.recorded(searcher.RunOpened)) == 2
    assert cluster.size > quiet
    await asyncio.sleep(1000)
    assert cluster.trial == "ACTIVE"


@played
async def test_a_replica_that_starts_waits_for_a_whole_patience(cluster):
    await (await cluster.begin()).stop()
    await asyncio.sleep(10 * PATIENCE_S)
    # Nobody has listened, and the script is gone for good.
    cluster.lives = False
    Replica(cluster, leads=True)
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(PATIENCE_S - 5)
    assert cluster.trial == "ACTIVE"
    await asyncio.sleep(15)
    ((_, lost_at),) = cluster.recorded(searcher.TrialEnded)
    assert lost_at - began > PATIENCE_S


@played
async def test_a_leader_that_changes_blames_nobody_who_lives(cluster):
    first = await cluster.begin()
    other = Replica(cluster, leads=False)
    for _ in range(10):
        await asyncio.sleep(400)
        first.leads, other.leads = other.leads, first.leads
        for replica in (first, other):
            replica.runner.on_leadership_change()
    assert cluster.recorded(searcher.TrialOverdue) == []
    # What the new leader heard as a follower is no silence of before, either.
    cluster.lives = False
    changed = asyncio.get_running_loop().time()
    await asyncio.sleep(PATIENCE_S - 5)
    assert cluster.recorded(searcher.TrialOverdue) == []
    await asyncio.sleep(BEAT_S + 15)
    ((_, lost_at),) = cluster.recorded(searcher.TrialOverdue)
    assert lost_at - changed >= PATIENCE_S - BEAT_S


@played
async def test_nobody_is_silent_while_the_broker_is_away(cluster):
    await cluster.begin()
    await asyncio.sleep(100)

    async def away(stream):
        raise OutcomeUnknown("away")

    bounds, cluster.journal.bounds, cluster.lives = cluster.journal.bounds, away, False
    await asyncio.sleep(2000)
    assert cluster.recorded(searcher.TrialOverdue) == []
    cluster.journal.bounds = bounds
    await asyncio.sleep(PATIENCE_S - 5)
    assert cluster.recorded(searcher.TrialOverdue) == []
    cluster.lives = True
    await asyncio.sleep(1000)
    assert cluster.recorded(searcher.TrialOverdue) == []


@played
async def test_what_is_not_waited_for_is_not_decided_about_again_and_again(cluster):
    leader = await cluster.begin()
    await asyncio.sleep(100)
    await leader.command(EndTrial(trial_id=1, state="COMPLETED", user="determined"))
    await asyncio.sleep(10)
    ended = cluster.size
    await asyncio.sleep(DAY_S / 24)
    assert cluster.size == ended
    assert cluster.trial == "COMPLETED"


@played
async def test_hours_of_heartbeats_write_no_event(cluster):
    await cluster.begin()
    await asyncio.sleep(BEAT_S)
    before = cluster.size
    await asyncio.sleep(DAY_S / 6)
    assert cluster.size == before
    assert cluster.recorded(Decision)
    assert cluster.trial == "ACTIVE"


# -- the watch by itself


@pytest.fixture
def outside(searching):
    """Fifty trials that run elsewhere, and who listens to them."""
    fold = searching.fold
    fold.rule(
        CreateExperiment(user="ann", config=CONFIG, original_config="", unmanaged=True, request_key=":m")
    )
    fold.decide()
    for number in range(50):
        fields = {"experiment_id": 1, "request_id": f"t{number}", "hparams": {}, "user": "ann"}
        fold.rule(CreateTrial(**fields))
        fold.rule(OpenRun(trial_id=number + 1, resume=True, user="ann"))
        fold.decide()
    return SimpleNamespace(fold=fold, state=fold.state, listener=Listener(lambda: fold.now))


def live(outside, seconds, *, every=heartbeats.MAX_GAP_S - 10, trials=range(1, 51)):
    """Scripts beat and the watch looks; returns what it reported, all of which was decided upon."""
    until, reports = outside.fold.now + seconds, []
    while outside.fold.now < until:
        outside.fold.now += every
        for id in trials:
            outside.listener.hear(id, 1)
        new_reports = outside.listener.reports(outside.state)
        for report in new_reports:
            outside.fold.rule(report)
            outside.fold.decide()
        reports += new_reports
    return reports


def test_a_year_of_heartbeats_does_not_grow_log_state_or_watch(outside, monkeypatch):
    live(outside, DAY_S / 24)
    # Looks that are so rare would else mean that the watch stood still.
    monkeypatch.setattr(outside.listener.watch._listening, "_gap_s", PATIENCE_S)
    before, position, heard = (
        dump(outside.state),
        outside.fold._position,
        len(outside.listener.watch._last_heartbeats),
    )
    reports = live(outside, 365 * DAY_S, every=PATIENCE_S - 10, trials=(1, 2))
    # Two are heard two hundred thousand times; the others fall silent.
    assert len(reports) == 48
    assert {t.state for id, t in outside.state.trials.items() if id > 2} == {"ERROR"}
    assert {outside.state.trials[id].state for id in (1, 2)} == {"ACTIVE"}
    assert outside.fold._position - position == 2 * 48
    after = dump(outside.state)
    grown = {name for name, table in after.items() if len(table) > len(before[name])}
    # How many trials have failed is counted from the first one on.
    assert grown == {"tallies"}
    assert (
        heard,
        len(outside.listener.watch._last_heartbeats),
        outside.listener.watch._recent_heartbeats,
    ) == (50, 2, {})


def test_a_watch_that_stood_still_blames_nobody(outside):
    live(outside, 1000)
    outside.fold.now += 10 * PATIENCE_S
    assert outside.listener.reports(outside.state) == []
    assert live(outside, PATIENCE_S - 20, every=10, trials=()) == []
    assert len(live(outside, 40, every=10, trials=())) == 50


def test_heartbeats_of_unknown_trials_are_dropped(outside):
    for id in range(1000, 1500):
        outside.listener.hear(id, 1)
    outside.listener.restart(outside.state)
    assert (outside.listener.watch._last_heartbeats, outside.listener.watch._recent_heartbeats) == ({}, {})
    for id in range(1000, 1500):
        outside.listener.hear(id, 1)
    report_counts = [len(outside.listener.reports(outside.state)) for _ in range(4)]
    assert report_counts == [200, 200, 100, 0]
    assert outside.listener.watch._last_heartbeats == {}


@pytest.mark.parametrize("subject", ["alive.x", "alive.", "alive.²"])
@pytest.mark.parametrize("body", [b"", b"x", b"-1"])
def test_what_is_no_sign_of_life_is_none(outside, subject, body):
    message = SimpleNamespace(subject=subject, data=body)
    asyncio.run(outside.listener.watch.on_heartbeat(message))
    assert outside.listener.watch._last_heartbeats == {}


def test_a_sign_of_life_of_an_earlier_run_counts_for_nothing(outside):
    outside.fold.rule(OpenRun(trial_id=1, resume=True, user="ann"))
    reports = live(outside, 2 * PATIENCE_S)
    silent = [report for report in reports if isinstance(report, ReportScriptSilent)]
    assert silent == [ReportScriptSilent(1, 2, 350.0)]
    assert outside.state.trials[1].state == "ERROR"


def test_operators_see_who_is_heard(outside):
    live(outside, 60, every=20, trials=range(1, 11))
    (reading,) = outside.listener.watch.readings(outside.state)
    assert reading.values == {("yes",): 10.0, ("no",): 40.0}
