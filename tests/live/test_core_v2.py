"""A script outside of the cluster that reports to it by our own `core_v2`."""

import signal
import sys

from tests.fixtures.local_cluster import wait_for
from tests.fixtures.outside import run, steps_of

SCRIPT = """
import os, signal, sys
from determined.experimental import core_v2

core_v2.init(
    defaults=core_v2.DefaultConfig(
        name="from outside",
        hparams={"lr": 0.1},
        labels=["outside"],
        data={"path": "/d"},
        searcher={"name": "single", "max_length": 4, "metric": "loss"},
    ),
    checkpoint_storage=sys.argv[1],
    unmanaged=core_v2.UnmanagedConfig(external_experiment_id=sys.argv[3], external_trial_id=sys.argv[2]),
)
latest, start = core_v2.info.latest_checkpoint, 0
if latest is not None:
    with core_v2.checkpoint.restore_path(latest) as path:
        start = int((path / "step").read_text())
print("begins at", start, core_v2.info.trial.hparams, core_v2.info.user_data)
for op in core_v2.searcher.operations():
    for step in range(start + 1, op.length + 1):
        core_v2.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        with core_v2.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
            (path / "step").write_text(str(step))
        op.report_progress(step)
        if step == 2 and start == 0 and sys.argv[2] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if step == 2 and sys.argv[2] == "fails":
            raise ValueError("as it happens")
    core_v2.train.report_validation_metrics(steps_completed=step, metrics={"loss": 0.25})
    assert core_v2.checkpoint.get_metadata(uuid) == {"steps_completed": step}
    op.report_completed(0.25)
print(core_v2.url_reverse_webui_exp_view())
core_v2.close()
assert core_v2.train is None
"""


def test_a_script_reports_from_outside(cluster, tmp_path):
    storage, name = tmp_path / "storage", "ours"
    before = cluster.newest_experiment()

    def outside(trial, status=0):
        return run(cluster, sys.executable, SCRIPT, tmp_path, storage, trial, name, status=status)

    outside("killed", status=-signal.SIGKILL)
    id = cluster.experiment_after(before)
    assert cluster.trials(id)[0]["state"] == "STATE_RUNNING"
    output = outside("killed")
    assert "begins at 2 {'lr': 0.1} {'path': '/d'}" in output
    assert f"{cluster.address}/det/experiments/{id}" in output
    outside("fails", status=1)
    wait_for(lambda: len(cluster.trials(id)) == 2, 60, "the second trial")
    resumed, failed = cluster.trials(id)
    assert [resumed["state"], failed["state"]] == ["STATE_COMPLETED", "STATE_ERROR"]
    assert steps_of(cluster, resumed["id"], "training") == [(1, 1), (1, 2), (2, 3), (2, 4)]
    assert steps_of(cluster, resumed["id"], "validation") == [(2, 4)]
    assert (resumed["checkpointCount"], resumed["restarts"]) == (4, 1)
    assert cluster.experiment(id)["labels"] == ["outside"]
    wait_for(lambda: any("begins at 2" in line for line in cluster.logs(resumed["id"])), 60, "its output")
    wait_for(lambda: any("as it happens" in line for line in cluster.logs(failed["id"])), 60, "the traceback")


MANAGED = """
from determined.experimental import core_v2

core_v2.init(defaults=core_v2.DefaultConfig(name="ignored here"))
for op in core_v2.searcher.operations():
    core_v2.train.report_validation_metrics(steps_completed=op.length, metrics={"loss": 0.5})
    op.report_completed(0.5)
core_v2.close()
"""
CONFIG = """
name: managed
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 3}
max_restarts: 0
"""


def test_the_same_script_as_a_task(cluster, tmp_path):
    (tmp_path / "train.py").write_text(MANAGED)
    (tmp_path / "c.yaml").write_text(CONFIG)
    id = cluster.create("c.yaml", tmp_path)
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED", cluster.logs(cluster.trials(id)[0]["id"])
    (trial,) = cluster.trials(id)
    assert steps_of(cluster, trial["id"], "validation") == [(1, 3)]
