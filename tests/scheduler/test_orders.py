"""What workers are told: all that they are to do, once it is folded, and nothing that was overtaken."""

import asyncio
from types import SimpleNamespace

import msgspec
import pytest

from det_contracts import subjects
from det_contracts.envelope import Recorded
from det_contracts.events import scheduler, searcher, worker
from det_contracts.orders import Briefing, Gang, Standing, WorkerOrders
from services.kit.log import Draft, Fence
from services.scheduler import orders
from tests.scheduler.orders_cluster import CONFIG, Cluster, run_requested


@pytest.fixture
def play():
    def run(story):
        async def work():
            cluster = Cluster()
            try:
                await story(cluster)
            finally:
                await cluster.end()

        asyncio.run(work())

    return run


def ids(orders):
    return [entry.allocation_id for entry in orders.allocations]


def test_an_order_contains_all_that_a_start_needs(play):
    async def story(cluster):
        cluster.schedulers()
        await cluster.register()
        await cluster.request(1)
        worker_orders = await cluster.orders_when(ids)
        assert (worker_orders.session, worker_orders.presence, cluster.made) == ("s1", "here", ["w"])
        (entry,) = worker_orders.allocations
        assert (entry.allocation_id, entry.end, entry.lost, entry.problem) == ("1.r.1", "", False, "")
        briefing = entry.briefing
        assert (briefing.user, briefing.config, briefing.checkpoint) == ("ann", CONFIG, "c")
        assert (briefing.trial.hparams, briefing.trial.seed, briefing.trial.steps_completed) == (
            {"lr": 0.1},
            7,
            3,
        )
        assert briefing.gang.addresses == ("at-w",)
        assert briefing.token == "token of 1.r.1"
        assert briefing.assigned.allocation_id == "1.r.1"
        assert worker_orders.position >= entry.position

    play(story)


def test_only_the_workers_of_a_run_get_its_token(play):
    async def story(cluster):
        cluster.schedulers()
        for name in "ab":
            await cluster.register(name, slots=1)
        await cluster.request(1)
        await cluster.request(2)
        allocations = {name: (await cluster.orders_when(ids, name)).allocations for name in "ab"}
        tokens = {name: [entry.briefing.token for entry in entries] for name, entries in allocations.items()}
        assert sorted(tokens.values()) == [["token of 1.r.1"], ["token of 2.r.1"]]
        for name, other in zip("ab", "ba", strict=True):
            received = "".join(str(message) for message in cluster.messages(name))
            assert tokens[name][0] in received
            assert tokens[other][0] not in received

    play(story)


def test_all_nodes_of_a_gang_get_the_same_order(play):
    async def story(cluster):
        cluster.schedulers()
        for name in "ab":
            await cluster.register(name)
        await cluster.request(1, slots=4)
        briefing, other = [(await cluster.orders_when(ids, name)).allocations[0].briefing for name in "ab"]
        assert briefing == other
        assert sorted(briefing.gang.addresses) == ["at-a", "at-b"]

    play(story)


def test_orders_contain_ends_with_their_reason_and_no_ended_runs(play):
    async def story(cluster):
        cluster.schedulers()
        await cluster.register()
        await cluster.request(1)
        await cluster.orders_when(ids)
        killed = searcher.StopRequested(trial_id=1, allocation_id="1.r.1", kill=True, reason="killed by ann")
        await cluster.say(worker.AllocationStarted("w", "1.r.1"), killed)
        worker_orders = await cluster.orders_when(lambda orders: orders.allocations[0].end)
        assert (worker_orders.allocations[0].end, worker_orders.allocations[0].briefing) == (
            "killed by ann",
            None,
        )
        await cluster.say(worker.AllocationExited(worker_id="w", allocation_id="1.r.1", exit_code=137))
        await cluster.orders_when(lambda orders: not orders.allocations)

    play(story)


def test_a_lost_worker_gets_orders_to_end_its_runs(play):
    async def story(cluster):
        cluster.schedulers()
        await cluster.say(
            scheduler.PoolConfigured(
                pool="default", settings=scheduler.PoolSettings(on_lost="fence", fence_after_s=9), reason=""
            )
        )
        await cluster.register()
        await cluster.request(1)
        await cluster.orders_when(ids)
        await cluster.say(worker.AllocationStarted("w", "1.r.1"), scheduler.WorkerLost("w", "silent"))
        worker_orders = await cluster.orders_when(lambda orders: orders.presence == "lost")
        assert [
            (entry.allocation_id, bool(entry.end), entry.lost) for entry in worker_orders.allocations
        ] == [("1.r.1", True, True)]

    play(story)


def test_what_changes_nothing_is_not_written(play):
    async def story(cluster):
        cluster.schedulers()
        await cluster.register()
        await cluster.request(1)
        await cluster.orders_when(ids)
        before = len(cluster.messages())
        await cluster.say(worker.AllocationStarted("w", "1.r.1"))
        await cluster.register("another")
        await cluster.orders_when(lambda orders: True, "another")
        assert len(cluster.messages()) == before

    play(story)


def test_the_log_lacks_what_it_is_to_run(play):
    async def story(cluster):
        cluster.schedulers()
        await cluster.register()
        await cluster.say(run_requested(5))
        worker_orders = await cluster.orders_when(ids)
        assert worker_orders.allocations[0].briefing is None
        assert "the log has nothing on control.searcher" in worker_orders.allocations[0].problem

    play(story)


def test_orders_beyond_one_message_follow_when_earlier_ones_have_started(play, monkeypatch):
    monkeypatch.setattr(orders, "BRIEFINGS_BYTES", 3000)
    large = CONFIG | {"padding": "x" * 1500}

    async def story(cluster):
        cluster.schedulers()
        await cluster.register()
        await cluster.request(1, config=large)
        await cluster.request(2, config=large)
        worker_orders = await cluster.orders_when(ids)
        assert ids(worker_orders) == ["1.r.1"]
        second = [m for m in cluster.log.streams[subjects.CONTROL] if m.subject.endswith("2.r.1.assigned")]
        if second:
            assert worker_orders.position < second[0].position
        await cluster.say(worker.AllocationStarted("w", "1.r.1"))
        await cluster.orders_when(lambda orders: ids(orders) == ["1.r.1", "2.r.1"])

    play(story)


@pytest.mark.parametrize("reason", ["its experiment was killed " * 15, "x" * 3_000_000])
def test_an_order_to_end_waits_for_nobodys_briefing(play, monkeypatch, reason):
    """Briefings fill as much of a message as they may; there is room for the order, whatever its reason."""
    monkeypatch.setattr(orders, "EVENT_BYTES", 4000)
    monkeypatch.setattr(orders, "BRIEFINGS_BYTES", 3000)
    large = CONFIG | {"padding": "x" * 1200}

    async def story(cluster):
        cluster.schedulers()
        await cluster.register(slots=3)
        await cluster.request(1)
        await cluster.orders_when(ids)
        await cluster.say(worker.AllocationStarted("w", "1.r.1"))
        await cluster.request(2, config=large)
        await cluster.request(3, config=large)
        await cluster.orders_when(lambda orders: "2.r.1" in ids(orders))
        await cluster.say(scheduler.KillRequested("1.r.1", reason))
        worker_orders = await cluster.orders_when(
            lambda orders: any(entry.end for entry in orders.allocations)
        )
        assert reason.startswith(worker_orders.allocations[0].end)
        await cluster.say(worker.AllocationStarted("w", "2.r.1"))
        await cluster.orders_when(lambda orders: ids(orders) == ["1.r.1", "2.r.1", "3.r.1"])

    play(story)


def test_what_was_briefed_stays_although_its_briefing_has_grown(monkeypatch):
    """As by another version: else no orders could be written until those before it have started."""
    monkeypatch.setattr(orders, "EVENT_BYTES", 4000)
    monkeypatch.setattr(orders, "BRIEFINGS_BYTES", 3000)

    def worker_orders(*sizes):
        assigned = scheduler.AllocationAssigned(
            allocation_id="a", task_id="t", kind="TRIAL", experiment_id=1, run=1, parts=(), reason=""
        )
        brief = [
            Briefing(assigned=assigned, user="ann", config={"x": "x" * size}, gang=Gang((), ()))
            for size in sizes
        ]
        standing = [
            Standing(allocation_id=f"{n}", position=n, briefing=briefing)
            for n, briefing in enumerate(brief, 1)
        ]
        return WorkerOrders(
            worker_id="w", position=9, session="s", presence="here", allocations=tuple(standing)
        )

    sent = orders.trim_to_message(worker_orders(900, 900), None)
    assert (sent.position, ids(sent)) == (9, ["1", "2"])
    grown = worker_orders(1200, 1200)
    assert (orders.trim_to_message(grown, sent).position, ids(orders.trim_to_message(grown, sent))) == (
        9,
        ["1", "2"],
    )
    assert (orders.trim_to_message(grown, None).position, ids(orders.trim_to_message(grown, None))) == (
        1,
        ["1"],
    )


def test_another_leader_goes_on_and_the_old_one_is_refused(play):
    async def story(cluster):
        cluster.schedulers(2)
        await cluster.register()
        await cluster.request(1)
        await cluster.orders_when(ids)
        cluster.leader = 1
        await cluster.register("late")
        await cluster.orders_when(lambda orders: True, "late")
        # It finds what the other one wrote as it must be.
        assert len(cluster.messages()) == len({m.position for m in cluster.messages()})
        await cluster.until(lambda: cluster.writers[1].has_current_orders("w"))
        before = cluster.messages()
        cluster.leader = 0
        await cluster.request(2)
        worker_orders = await cluster.orders_when(lambda orders: ids(orders) == ["1.r.1", "2.r.1"])
        assert worker_orders.position > before[-1].position

    play(story)


def test_older_orders_never_take_the_place_of_newer_ones(play):
    async def story(cluster):
        newer = WorkerOrders(worker_id="w", position=10**6, session="s9", presence="here", allocations=())
        draft = Draft(subjects.orders("w"), msgspec.json.encode(newer), "newer")
        await cluster.log.append_batch([draft], fence=Fence(subjects.orders("w"), 0))
        cluster.schedulers()
        # There is as much in the log, and this scheduler has not read it.
        cluster.writers[0]._journal = Longer(cluster.log)
        await cluster.register()
        await cluster.register("another")
        await cluster.orders_when(lambda orders: True, "another")
        assert cluster.messages() == [newer]
        assert not cluster.writers[0].has_current_orders("w")

    play(story)


class Longer:
    """A log that has more than its reader knows of yet."""

    def __init__(self, log):
        self._log = log

    def __getattr__(self, name):
        return getattr(self._log, name)

    async def bounds(self, stream):
        return 1, 10**6


def test_orders_of_a_lost_log_are_replaced(play, monkeypatch):
    """CONTROL was restored from an older copy, and ORDERS tells of runs that were never placed."""
    monkeypatch.setattr(orders, "SET_BACK_S", 0.3)

    async def story(cluster):
        gone = Standing(allocation_id="9.r.1", position=900)
        later = WorkerOrders(worker_id="w", position=1000, session="s1", presence="here", allocations=(gone,))
        await cluster.log.append(Draft(subjects.orders("w"), msgspec.json.encode(later), "later"))
        await cluster.register()
        await cluster.request(1)
        cluster.schedulers()
        now = await cluster.orders_when(lambda orders: orders.position < 1000)
        assert ids(now) == ["1.r.1"]
        await cluster.until(lambda: cluster.writers[0].has_current_orders("w"))

    play(story)


@pytest.mark.parametrize("id", ["9.r.1", "1.r.1"])
def test_orders_of_a_lost_log_are_replaced_although_the_restored_one_is_as_long(play, id):
    """Their positions are in the restored log by now; of the runs, one is unknown, the other's id is new."""

    async def story(cluster):
        await cluster.register()
        await cluster.request(1)
        gone = Standing(allocation_id=id, position=1)
        earlier = WorkerOrders(worker_id="w", position=2, session="s1", presence="here", allocations=(gone,))
        await cluster.log.append(Draft(subjects.orders("w"), msgspec.json.encode(earlier), "earlier"))
        cluster.schedulers()
        now = await cluster.orders_when(lambda orders: orders.position > 2)
        assert ids(now) == ["1.r.1"]
        (mine,) = now.allocations
        assert mine.position > 2
        # The worker tells by the position that the run of this id is another one.
        other = msgspec.structs.replace(mine, position=1)
        assert orders.has_same_effect(now, now)
        assert not orders.has_same_effect(now, msgspec.structs.replace(now, allocations=(other,)))

    play(story)


def test_a_worker_that_lives_and_was_never_registered_is_called_back(play, cluster, monkeypatch):
    """It registered in a log that is gone: nobody else would tell it so."""
    from services.scheduler import heartbeats

    now = [100.0]
    monkeypatch.setattr(heartbeats, "since_boot", lambda: now[0])
    cluster.worker()
    watch = heartbeats.HeartbeatMonitor(25.0)

    def beats(seconds):
        for _ in range(int(seconds)):
            now[0] += 1.0
            for id, session in (("w1", "other"), ("gone", "s7")):
                beat = SimpleNamespace(subject=subjects.heartbeat(id), data=session.encode())
                asyncio.run(watch.on_heartbeat(beat))
            watch.silence_reports(cluster.state)
            unregistered = watch.unregistered_workers(cluster.state)
        return unregistered

    assert beats(20) == []
    assert beats(10) == [("gone", "s7")]
    now[0] += 20.0
    assert watch.unregistered_workers(cluster.state) == []

    async def story(cluster):
        cluster.schedulers()
        await cluster.register("another")
        await cluster.orders_when(lambda orders: True, "another")
        cluster.writers[0].request_registration("gone", "s7")
        orders = await cluster.orders_when(lambda orders: True, "gone")
        assert (orders.session, orders.presence, orders.allocations) == ("s7", "lost", ())
        await cluster.register("gone", session="s8")
        await cluster.orders_when(lambda orders: orders.session == "s8" and orders.presence == "here", "gone")

    play(story)


def test_nobody_is_given_up_before_the_host_can_know(cluster, monkeypatch):
    from services.scheduler import heartbeats

    now = [100.0]
    monkeypatch.setattr(heartbeats, "since_boot", lambda: now[0])
    received = []
    watch = heartbeats.HeartbeatMonitor(25.0, lambda worker_id: worker_id in received)
    cluster.pool(on_lost="fence", fence_after_s=9.0)
    cluster.job()
    cluster.worker()
    cluster.request(1)
    cluster.started(1)
    cluster.decisions_after(scheduler.WorkerLost("w1", "silent"))
    for _ in range(3):
        now[0] += 100.0
        assert watch.give_up_commands(cluster.state) == []
    received.append("w1")
    assert watch.give_up_commands(cluster.state) == []
    now[0] += 9.0 + heartbeats.GRACE_S + 0.1
    assert [command.worker_id for command in watch.give_up_commands(cluster.state)] == ["w1"]


def test_after_a_reload_orders_are_derived_from_the_state_alone(play):
    async def story(cluster):
        cluster.schedulers()
        await cluster.register()
        await cluster.request(1)
        await cluster.orders_when(ids)
        writer, messages = cluster.writers[0], cluster.messages()
        assert writer._workers_of == {"1.r.1": {"w"}}
        # As where another replica saved what became of a run, and neither state holds it.
        writer._workers_of["2.r.1"], writer._briefings["2.r.1"] = {"gone"}, "no context"
        writer._unregistered["gone"] = "s7"
        # The newest request that was folded here is not the newest one.
        stale = run_requested(1, allocation_id="1.r.0", run=9)
        writer._facts.on_folded([Recorded(1, stale, "", "", 0.0, "")])
        cluster.runners[0]._saver.on_reload()
        assert not writer.has_current_orders("w")
        await cluster.until(lambda: writer.has_current_orders("w"))
        assert (writer._workers_of, writer._unregistered) == ({"1.r.1": {"w"}}, {})
        assert "2.r.1" not in writer._briefings
        # They are as before, and not written again.
        assert cluster.messages() == messages

    play(story)


def test_nothing_is_kept_of_workers_that_are_forgotten(play):
    async def story(cluster):
        cluster.schedulers(2)
        leader, follower = cluster.writers
        for number in range(5):
            id = f"w{number}"
            await cluster.register(id)
            await cluster.orders_when(lambda orders: orders.presence == "here", id)
            await cluster.say(worker.WorkerLeft(id, "s1"), scheduler.WorkerForgotten(id, "long ago"))
        await cluster.until(lambda: not any(runner.state.workers for runner in cluster.runners))
        await cluster.until(lambda: not (leader._published or leader._outdated or leader._being_written))
        await cluster.until(lambda: not follower._outdated)

    play(story)
