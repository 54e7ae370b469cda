"""A cluster that has lived for years knows what it knew after months: what lives, and what ended of late.

So much work is played once and twice. Then no table of any service has more records than it had, but for
those that are listed, with the reason.
"""

from functools import cache

import pytest

from det_contracts import commands
from det_contracts.creation import Once
from det_contracts.events import gateway, scheduler, trial, worker
from det_contracts.events.scheduler import PoolSettings
from services.kit.idempotency import KEY_LIFETIME_S
from services.people.tokens import MAX_SESSION_S
from services.scheduler.commands import GiveUp, ReportSilence
from services.scheduler.domain.records import CLOSED_WORKERS_KEPT_S, TASKS_KEPT_S, WORKERS_KEPT_S
from services.searcher.unmanaged import ReportScriptHeard, ReportScriptSilent
from tests.walks.background import Users
from tests.walks.cluster import Cluster

DAY_S = 86_400.0
DAYS_BETWEEN = 5
MONTHS = 10
DAYS = MONTHS * 30
GROW = {
    "metrics.gone": "the number of each experiment that was deleted, in the database: nothing of it is kept",
    "gateway.allocations": "each run that used slots, in the database: reports count it",
    "gateway.deleted_experiments": "whose each deleted experiment was that used slots: reports count it",
}


class Years(Users):
    """Everything that comes and goes, every few days: it is made, ends, and what can be deleted is."""

    def __init__(self, cluster):
        super().__init__(cluster)
        self.here("steady", 8)
        self.outside = self.submit(unmanaged=True)
        made = {"experiment_id": self.outside, "request_id": "r", "hparams": {}, "user": "ann"}
        cluster.ask(commands.CreateTrial(**made))
        (self.unmanaged,) = self.trials_of(self.outside)
        cluster.ask(commands.OpenRun(trial_id=self.unmanaged, resume=True, user="ann"))

    def live(self, days):
        for _ in range(0, days, DAYS_BETWEEN):
            name = f"n{self.cluster.now:.0f}"
            for part in (self.sessions, self.tasks, self.worker, self.searches, self.people, self.heartbeats):
                part(name)
            self.cluster.pass_time(DAYS_BETWEEN * DAY_S)

    def heartbeats(self, name):
        """Of a script outside of the cluster, which is lost in between; some of them are of an old log."""
        for _ in range(10):
            self.cluster.tell(trial.Heartbeat(self.unmanaged, 1))
            self.cluster.pass_time(50)
        self.cluster.pass_time(300)
        self.cluster.ask(ReportScriptSilent(self.unmanaged, 1, 300.0))
        assert self.cluster.states["searcher"].trials[self.unmanaged].state == "ERROR"
        self.cluster.ask(ReportScriptHeard(self.unmanaged, 1))
        assert self.cluster.states["searcher"].trials[self.unmanaged].state == "ACTIVE"

    def sessions(self, name):
        until = self.cluster.now + 7 * DAY_S
        of = {"user_id": 1, "address": "", "client": "", "user": "admin"}
        opened_at = self.cluster.now
        for suffix in ("a", "b"):
            self.cluster.ask(
                commands.OpenSession(session_id=f"{name}-{suffix}", opened_at=opened_at, until=until, **of)
            )
        self.cluster.ask(commands.CloseSession(session_id=f"{name}-a", user="admin"))
        # As one ends whose beginning an earlier version did not tell.
        self.cluster.tell(gateway.SessionClosed(f"{name}-old", "admin", ""))

    def tasks(self, name):
        of = {"kind": "COMMAND", "user": "ann", "name": "", "config": {}, "slots": 1, "pool": "default"}
        self.cluster.ask(commands.SubmitTask(task_id=name, once=Once(f"t{name}", name, "d"), **of))
        self.cluster.tell(worker.AllocationStarted("steady", f"{name}.1"))
        self.cluster.write(f"{name}.1", 1)
        self.exit(f"{name}.1")

    def worker(self, name):
        self.here(f"w{name}", 1, pool="other")
        self.cluster.tell(worker.WorkerLeft(f"w{name}", "s"))

    def searches(self, name):
        id = self.submit(once=name, request_key=f":{name}")
        (trial_id,) = self.trials_of(id)
        self.start(trial_id)
        run = self.run_of(trial_id)
        for number in (1, 2, 3):
            share = {"allocation_id": run, "peers": 1, "data": "x", "user": "ann"}
            self.cluster.ask(commands.JoinGather(request_id=f"r{number}", **share))
        self.cluster.report(trial_id, [50, 100])
        self.store(trial_id, 100)
        self.complete(trial_id)
        self.leave(trial_id)
        self.settle(trial_id)
        self.change(id, "delete")
        for task in [t for t in self.cluster.states["checkpoints"].deletions if t.startswith(f"{id}.")]:
            self.exit(f"{task}.1")

    def people(self, name):
        ask = self.cluster.ask
        space = ask(commands.SetWorkspace(name=name, user="admin", once=Once(f"s{name}", name, "d")))
        ask(commands.SetProject(workspace_id=space, name=name, user="admin"))
        ask(commands.RemoveWorkspace(workspace_id=space, user="admin"))
        group = ask(commands.SetGroup(name=name, user="admin"))
        ask(commands.SetQuota(holder=f"group-{group}", jobs=1, user="admin"))
        ask(commands.RemoveGroup(group_id=group, user="admin"))
        token = {"user_id": 1, "scope": "all", "lives_s": DAY_S, "user": "admin"}
        ask(commands.CreateToken(token_id=f"t{name}", name=name, digest=name, **token))
        model = ask(commands.SetModel(name=name, user="ann", once=Once(f"m{name}", name, "d")))
        ask(commands.RemoveModel(model_id=model, user="ann"))


@cache
def tables(days):
    cluster = Cluster()
    Years(cluster).live(days)
    return cluster.tables(), indexes(cluster)


def indexes(cluster):
    """How many entries each index has."""
    return {
        f"{owner}.{name}": len(list(index))
        for owner, state in cluster.states.items()
        for name, index in vars(state).items()
        if type(index).__name__ == "SortedKeys"
    }


@pytest.mark.parametrize("of", [0, 1], ids=["records", "indexes"])
def test_nothing_grows_with_the_years(of):
    once, twice = tables(DAYS)[of], tables(2 * DAYS)[of]
    grown = {name: (once[name], count) for name, count in twice.items() if count > once[name]}
    assert {name: sizes for name, sizes in grown.items() if name not in GROW} == {}
    assert of or set(grown) == set(GROW)


def test_all_of_it_has_been_there():
    """What is to be forgotten is kept for as long as is said, and no longer than until the next one."""
    records, _ = tables(DAYS)

    def rounds(kept_s):
        """How many ended so short a time ago; the last time was a round ago."""
        return int(kept_s / DAY_S - 1) // DAYS_BETWEEN

    assert records["scheduler.tasks"] == records["gateway.tasks"] == rounds(TASKS_KEPT_S)
    assert records["scheduler.workers"] - 1 == records["gateway.away"] == rounds(WORKERS_KEPT_S)
    for owner, each in (("searcher", 1), ("scheduler", 1), ("checkpoints", 1), ("gateway", 4)):
        assert records[f"{owner}.creations"] == each * (1 + rounds(KEY_LIFETIME_S))
    assert records["gateway.sessions"] == 1 + rounds(MAX_SESSION_S)
    assert records["metrics.sources"] == rounds(TASKS_KEPT_S)
    assert records["gateway.gatherings"] == records["gateway.shares"] == 0


def test_a_worker_that_a_person_closed_is_known_for_longer():
    cluster = Cluster()
    users = Users(cluster)
    for name in ("open", "closed", "slot"):
        users.here(name, 1)
    cluster.ask(commands.SwitchWorker(worker_id="closed", enabled=False, drain=False, user="admin"))
    cluster.ask(commands.SwitchSlot(worker_id="slot", slot_id=0, enabled=False, drain=False, user="admin"))
    for name in ("open", "closed", "slot"):
        cluster.tell(worker.WorkerLeft(name, "s"))
    cluster.pass_time(WORKERS_KEPT_S + 1)
    assert (
        set(cluster.states["scheduler"].workers) == set(cluster.states["gateway"].away) == {"closed", "slot"}
    )
    cluster.pass_time(CLOSED_WORKERS_KEPT_S - WORKERS_KEPT_S)
    assert not cluster.states["scheduler"].workers
    assert not cluster.states["gateway"].away


def test_a_worker_is_kept_while_a_run_has_a_share_of_it():
    cluster = Cluster()
    users = Users(cluster)
    cluster.ask(commands.ConfigurePools(pools={"default": PoolSettings(on_lost="fence")}))
    users.here("w", 1)
    (trial_id,) = users.trials_of(users.submit())
    users.start(trial_id)
    cluster.ask(ReportSilence("w", "s", 60.0))
    cluster.pass_time(WORKERS_KEPT_S + 1)
    assert set(cluster.states["scheduler"].workers) == {"w"}
    cluster.ask(GiveUp(users.run_of(trial_id), "w", 60.0))
    cluster.pass_time(0)
    assert not cluster.states["scheduler"].workers


def test_a_worker_that_came_back_meanwhile_stays():
    cluster = Cluster()
    users = Users(cluster)
    users.here("w", 1)
    cluster.tell(worker.WorkerLeft("w", "s"))
    users.here("w", 1, session="t")
    cluster.tell(scheduler.WorkerForgotten("w", "decided by one that had not read that it is back"))
    assert set(cluster.states["scheduler"].workers) == set(cluster.states["gateway"].workers) == {"w"}
