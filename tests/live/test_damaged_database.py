"""A database file that is damaged, before its service starts or later: the answers stay the same."""

import contextlib
import signal
import sqlite3

import pytest

from services.kit.files import damaged_copies
from services.kit.sqlite_files import COMPANIONS
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(600)
PLAN = {"slots": 2}
CONFIG = """
name: damaged
entrypoint: python3 train.py
searcher: {name: random, metric: loss, max_length: 3, max_trials: 4}
max_restarts: 0
"""
SCRIPT = """
import determined as det
with det.core.init() as core:
    for op in core.searcher.operations():
        for step in range(1, 200):
            core.train.report_training_metrics(step, {"loss": 1.0 / step})
        core.train.report_validation_metrics(step, {"loss": 0.5})
        print("a line")
        op.report_completed(0.5)
"""
OWNERS = ("gateway", "metrics", "searcher", "scheduler", "checkpoints", "webhooks")


@pytest.fixture(scope="module")
def cluster(module_cluster, tmp_path_factory):
    model = tmp_path_factory.mktemp("model")
    (model / "train.py").write_text(SCRIPT)
    (model / "config.yaml").write_text(CONFIG)
    module_cluster.wait_for_end(module_cluster.create("config.yaml", model))
    return module_cluster


def answers(cluster):
    # By name: a list without a filter is made from an index alone.
    (experiment,) = cluster.get("experiments", name="damaged")["experiments"]
    trials = cluster.trials(experiment["id"])
    curves = [cluster.stream("trials/metrics/training_metrics", trialIds=t["id"]) for t in trials]
    return experiment, trials, curves, [cluster.logs(t["id"]) for t in trials]


def file_of(cluster, owner):
    return cluster.home.path / "databases" / f"{owner}.db"


def times_made_again(cluster, owner):
    return cluster.log(owner).count('"event": "database.damaged"')


@pytest.mark.full
@pytest.mark.expected_log("database.damaged", reason="that is what was done to it")
def test_files_that_are_damaged_at_the_start_are_made_again(cluster):
    before = answers(cluster)
    for owner in OWNERS:
        cluster.stop(owner)
        content = file_of(cluster, owner).read_bytes()
        file_of(cluster, owner).write_bytes(b"\0" * len(content))
    for owner in OWNERS:
        cluster.start(owner)
        wait_for(lambda owner=owner: times_made_again(cluster, owner), 60, f"{owner} to notice")
    assert answers(cluster) == before
    for owner in OWNERS:
        assert len(damaged_copies(file_of(cluster, owner), COMPANIONS)) == 1


@pytest.mark.full
@pytest.mark.expected_log("database.damaged|[Mm]alformed|Damaged", reason="that is what was done to it")
@pytest.mark.parametrize(("owner", "table"), [("gateway", "experiments"), ("metrics", "log_chunks")])
def test_damage_that_is_met_later_ends_the_service_and_the_next_start_makes_it_again(cluster, owner, table):
    before, made = answers(cluster), times_made_again(cluster, owner)
    # Closed as it should be, so that nobody looks through all of it at the start.
    cluster.stop(owner, signal.SIGTERM)
    damage(file_of(cluster, owner), table)
    cluster.start(owner)
    wait_for(
        lambda: has_asked_all(cluster) and times_made_again(cluster, owner) > made, 60, f"{owner} to notice"
    )
    assert answers(cluster) == before


def damage(path, table):
    """Overwrite the first page of a table."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("select rootpage from sqlite_master where name = ?", [table]).fetchone()
        (size,) = connection.execute("pragma page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def has_asked_all(cluster):
    """Ask for what lies in tables; whether there was an answer does not matter."""
    with contextlib.suppress(AssertionError, OSError, ValueError, KeyError):
        answers(cluster)
    return True
