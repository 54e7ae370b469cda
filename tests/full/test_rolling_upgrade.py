"""This release takes the place of the one before, program by program and under load; back, and again."""

import asyncio
import os
import signal
import time
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from det_contracts import codec, subjects
from det_contracts.events.scheduler import TaskForgotten
from services.kit.log_jetstream import JetStreamLog
from services.kit.rules import dump
from services.kit.snapshot import Snapshot
from tests.fixtures.earlier_release import earlier_release as earlier_release
from tests.fixtures.earlier_release import runs_from
from tests.fixtures.local_cluster import LocalCluster, wait_for
from tests.fixtures.reading import _with_client, read_control, reported
from tests.history.facts import ALL, fold

pytestmark = pytest.mark.timeout(900)
SERVICES = ("searcher", "scheduler", "metrics", "checkpoints", "gateway")
STEPS = 12
CONFIG = """
name: {name}
entrypoint: python3 train.py
searcher: {searcher}
hyperparameters: {{lr: {{type: double, minval: 0, maxval: 1}}}}
max_restarts: 3
"""
SCRIPT = """
import pathlib, time
import determined as det
with det.core.init() as core:
    for op in core.searcher.operations():
        for step in range(1, op.length + 1):
            core.train.report_training_metrics(step, {"loss": 1.0 / step})
            print("step", step)
            if op.length > 100:
                time.sleep(0.05)
                if pathlib.Path("ENOUGH").exists():
                    break
        core.train.report_validation_metrics(op.length, {"loss": 1.0 / op.length})
        op.report_completed(1.0 / op.length)
"""


class Upgrade:
    """A cluster whose programs run one release or the other."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder
        self.enough = folder / "enough"
        self.ids = []

    def submit(self, name, searcher):
        code = self.folder / f"{name}-{len(self.ids)}"
        code.mkdir()
        (code / "train.py").write_text(SCRIPT.replace("ENOUGH", str(self.enough)))
        (code / "config.yaml").write_text(CONFIG.format(name=name, searcher=searcher))
        # `det` gives up where the gateway is just being replaced.
        self.cluster.get("me")
        self.ids.append(self.cluster.create("config.yaml", code))
        return self.ids[-1]

    def small(self):
        return self.submit("small", f"{{name: random, metric: loss, max_length: {STEPS}, max_trials: 2}}")

    def replace(self, name, variables):
        """One program runs the other release. What a worker runs lives on, unless that is asked to end."""
        is_service = name not in self.cluster.workers()
        self.cluster.stop(name, signal.SIGTERM if is_service else signal.SIGKILL)
        self.cluster.start(name, **variables)
        wait_for(lambda: self._runs(name, variables), 60, f"{name} to be started")

    def _runs(self, name, variables):
        try:
            environment = Path(f"/proc/{self.cluster.pid(name)}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return f"PYTHONPATH={variables['PYTHONPATH']}".encode() in environment

    def roll(self, variables, names):
        """All programs, one after the other; work is submitted and comes to its end with each mixture."""
        for name in names:
            self.replace(name, variables)
            self.cluster.wait_for_end(self.small())

    def forget(self, task_id):
        """State what only this release knows."""
        number = next(
            logged_event.number
            for logged_event in read_control(self.cluster)
            if getattr(logged_event, "task_id", "") == task_id
        )
        event = TaskForgotten(task_id, number, "the test says so")
        body = codec.encode(event, id=f"forget-{task_id}", actor="scheduler", at=time.time())

        async def work(client):
            await client.jetstream().publish(codec.subject_of(event), body)

        asyncio.run(_with_client(self.cluster, work))

    def command(self):
        """A task of somebody's own that is over; its id."""
        id = self.cluster.det("cmd", "run", "-d", "true").stdout.strip()
        wait_for(lambda: id in self.listed(), 60, "the task to be listed")
        wait_for(lambda: self.listed()[id] == "STATE_TERMINATED", 60, "the end of the task")
        return id

    def listed(self):
        return {command["id"]: command["state"] for command in self.cluster.get("commands")["commands"]}


def control(cluster):
    """The messages of CONTROL."""

    async def work(client):
        messages = []
        async with JetStreamLog(client).read(subjects.CONTROL, after=0) as feed:
            while True:
                batch = await feed.batch()
                messages += batch.messages
                if batch.caught_up:
                    return messages

    return asyncio.run(_with_client(cluster, work))


def stored(cluster, owner):
    """What a service of this release has saved: its state, and the position that it is true at."""
    rules = ALL[owner]
    engine = sa.create_engine(f"sqlite:///{cluster.home.path}/databases/{owner}.db")
    with engine.connect() as connection:
        state, positions = Snapshot(owner, rules.state, rules.fold_version).load(connection)
    engine.dispose()
    return state, positions[subjects.CONTROL]


def plain(state):
    return msgspec.to_builtins(dump(state), str_keys=True)


def test_releases_take_each_others_place_and_nothing_is_lost(earlier_release, tmp_path):
    earlier, this = runs_from(earlier_release), {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    cluster = LocalCluster(tmp_path / "cluster", settings=earlier, slots=3)
    cluster.up()
    try:
        play(Upgrade(cluster, tmp_path), earlier, this)
    finally:
        cluster.down()


def play(upgrade, earlier, this):
    cluster = upgrade.cluster
    # The broker's configuration is this release's, in which workers hand log lines to the intake alone: it
    # comes when these have been replaced (docs/growing.md), and they do not go back while it is there.
    for name in ("intake", *cluster.workers()):
        upgrade.replace(name, this)
    busy = upgrade.submit("busy", "{name: single, metric: loss, max_length: 100000}")
    before = upgrade.small()
    cluster.wait_for_end(before)
    was = reported(cluster, before)
    first = upgrade.command()
    upgrade.roll(this, SERVICES)
    second, third = upgrade.command(), upgrade.command()
    upgrade.forget(second)
    wait_for(lambda: second not in upgrade.listed(), 60, "the task to be forgotten")
    anew = cluster.log("searcher").count('"database.other_fold"')
    # Back: the release before passes over what it does not know, and decides on.
    upgrade.roll(earlier, reversed(SERVICES))
    fourth = upgrade.command()
    upgrade.forget(third)
    assert reported(cluster, before) == was
    upgrade.roll(this, SERVICES)
    # What it stored before is still there: it goes on from where it was, and passes over nothing.
    assert cluster.log("searcher").count('"database.other_fold"') == anew
    assert upgrade.listed().keys() == {first, fourth}
    upgrade.enough.touch()
    cluster.wait_for_end(busy)
    check_all(upgrade, busy)
    check_folds(cluster)


def check_all(upgrade, busy):
    """Every experiment is whole: nothing of it is missing, and nothing there twice."""
    cluster = upgrade.cluster
    assert [cluster.experiment(id)["state"] for id in upgrade.ids] == ["STATE_COMPLETED"] * len(upgrade.ids)
    for id in upgrade.ids:
        for trial, (_, state, rows) in zip(cluster.trials(id), reported(cluster, id), strict=True):
            steps = sorted(at for kind, at in rows if kind == "training")
            last = len(steps) if id == busy else STEPS
            assert (state, steps) == ("STATE_COMPLETED", list(range(1, last + 1)))
            lines = [line for line in cluster.logs(trial["id"]) if "step " in line]
            numbers = [int(line.rpartition("step ")[2]) for line in lines]
            assert numbers == list(range(1, last + 1)), f"trial {trial['id']}: lines"
            assert trial["restarts"] == 0


def check_folds(cluster):
    """What each service has saved is a fold of the whole log: no event was passed over."""
    messages = control(cluster)
    for owner in ("searcher", "scheduler", "checkpoints", "gateway"):
        end = messages[-1].position
        wait_for(lambda owner=owner, end=end: stored(cluster, owner)[1] >= end, 60, f"{owner} to save")
        state, position = stored(cluster, owner)
        read = [message for message in control(cluster) if message.position <= position]
        assert plain(state) == plain(fold(ALL[owner], {subjects.CONTROL: read})), owner
