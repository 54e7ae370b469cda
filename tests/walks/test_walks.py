"""What one event costs does not grow with the number of records that it does not change.

The same story is played after so much and after ten times as much of everything. Counted are lines that run,
records that are gone through and bytes that are stored anew, so the result is the same on any machine.
"""

import functools

import pytest

from services.checkpoints import measures as checkpoints_measures
from services.metrics import react as metrics_react
from services.scheduler import measures as scheduler_measures
from services.scheduler import passes as scheduler_passes
from services.searcher import custom
from services.searcher import measures as searcher_measures
from services.searcher import react as searcher_react
from services.searcher.domain import state as searcher_state
from services.searcher.methods import custom as custom_search
from services.webhooks import measures as webhooks_measures
from tests.walks.background import Background
from tests.walks.cluster import ALL, Cluster, kinds_there_are
from tests.walks.counting import Cost
from tests.walks.story import Story

FEW = 20
MANY = 10 * FEW
WARM = 5
MORE_STEPS = 60
"""Allowed of the larger cluster: a third of a step for each record more, so no walk, but a logarithm."""
MORE_BYTES = 60
"""Likewise; larger numbers have more digits."""

A_PASS = "one pass over a pool looks at all jobs that want slots in it"
A_QUOTA = "it tells of every quota"
A_SEARCH = "a search is one record; the saver makes up for it by saving what takes long less often"
WALKS = {
    "scheduler reacts on pools": A_PASS,
    "scheduler answers ClusterState": "it is asked for the whole state, by tests and for support",
    "scheduler answers Pools": "it counts the slots of all workers",
    "scheduler answers JobsUsed": A_QUOTA,
    "scheduler answers Provisioning": "it tells of every worker that was asked for, once in some seconds",
    "checkpoints answers StorageUsed": A_QUOTA,
    "gateway rules on SetAuthz": "it looks at all workspaces, once, when roles begin to count",
    "scheduler is measured": "it counts the slots of all workers, every few seconds",
}
"""What may grow in steps, and why."""
LARGE = {
    "searcher folds searcher.OperationsPosted": A_SEARCH,
    "searcher folds searcher.TrialCreated": A_SEARCH,
    "searcher folds searcher.TrialEnded": A_SEARCH,
    "searcher folds trial.OperationCompleted": A_SEARCH,
    "searcher folds trial.Progressed": A_SEARCH,
}
"""What may grow in bytes, and why."""
FEW_RECORDS = {
    "searcher.totals", "searcher.tallies", "scheduler.totals", "checkpoints.totals", "checkpoints.tallies",
    "gateway.highest", "gateway.gathered", "metrics.trimmed", "scheduler.pools", "scheduler.supplies",
    "webhooks.totals", "webhooks.webhooks", "webhooks.owed", "webhooks.judging",
    "gateway.skips", "gateway.bindings", "searcher.bindings", "scheduler.bindings",
    "gateway.judging", "searcher.judging", "scheduler.judging", "checkpoints.judging",
    "checkpoints.origins", "metrics.sharing",
}  # fmt: skip
"""Tables with a record for the whole cluster, a state or a pool, or for few experiments of the background."""
PORTIONS = [
    (searcher_state, "MAX_TRIALS_PER_PASS"), (searcher_react, "MAX_TRIALS_PER_PASS"),
    (metrics_react, "AT_ONCE"),
    (scheduler_passes, "AT_ONCE"), (custom, "MAX_EVENTS"), (custom_search, "MAX_RUN_LENGTH"),
]  # fmt: skip
"""What is done in portions: here in small ones."""


@functools.cache
def played(count):
    """A cluster whose background is so large, after the story; and the kinds of events of the story."""
    if count != WARM:
        # What is made at its first use only is no cost of an event.
        played(WARM)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in PORTIONS:
            patch.setattr(module, name, 5)
        cluster = Cluster()
        background = Background(cluster, count)
        cluster.before = cluster.tables()
        del cluster.log[:]
        cluster.begin_to_count()
        for owner, measures in MEASURED.items():
            cluster.read(owner, measures.readings)
        Story(cluster, background)
    return cluster


MEASURED = {
    "searcher": searcher_measures,
    "scheduler": scheduler_measures,
    "checkpoints": checkpoints_measures,
    "webhooks": webhooks_measures,
}


def test_every_table_has_many_records():
    few = {name for name, records in played(MANY).before.items() if records < MANY - 1}
    assert few == FEW_RECORDS, "the background must hold many of these"


def test_the_story_has_every_kind_of_event():
    missing = kinds_there_are() - played(FEW).kinds_told()
    assert not missing, "the story must tell of these"


def test_the_story_has_every_command_and_query():
    counted = played(FEW).counted
    missing = [
        f"{owner} {does} {kind.__name__}"
        for owner, rules in ALL.items()
        for does, kinds in (("rules on", rules.commands), ("answers", rules.answers))
        for kind in kinds
        if f"{owner} {does} {kind.__name__}" not in counted
    ]
    assert not missing, "the story must ask for these"


def grown(unit, most):
    small, large = played(FEW).counted, played(MANY).counted
    return {
        name: f"{getattr(small.get(name, Cost()), unit)} -> {getattr(cost, unit)}"
        for name, cost in large.items()
        if getattr(cost, unit) - getattr(small.get(name, Cost()), unit) > most
    }


def test_no_call_walks_through_what_it_does_not_change():
    increases = grown("steps", MORE_STEPS)
    assert set(increases) == set(WALKS), increases


def test_no_event_stores_anew_what_it_does_not_change():
    increases = grown("size_bytes", MORE_BYTES)
    assert set(increases) == set(LARGE), increases
