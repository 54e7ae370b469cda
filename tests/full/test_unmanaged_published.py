"""A script outside of the cluster that reports to it with the published SDK, unmanaged."""

import signal

import pytest

from tests.fixtures.local_cluster import wait_for
from tests.fixtures.outside import run, steps_of

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("published")]

PUBLISHED = """
import os, signal, sys
from determined.experimental import core_v2

core_v2.init(
    defaults=core_v2.DefaultConfig(
        name="with their SDK",
        hparams={"lr": 0.1},
        labels=["outside"],
        searcher={"name": "single", "max_length": 4, "metric": "loss"},
    ),
    checkpoint_storage=sys.argv[1],
    unmanaged=core_v2.UnmanagedConfig(
        external_experiment_id="theirs", external_trial_id=sys.argv[2]
    ),
)
latest, start = core_v2.info.latest_checkpoint, 0
if latest is not None:
    with core_v2.checkpoint.restore_path(latest) as path:
        start = int((path / "step").read_text())
print("begins at", start)
for op in core_v2.searcher.operations():
    for step in range(start + 1, op.length + 1):
        core_v2.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        with core_v2.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
            (path / "step").write_text(str(step))
        op.report_progress(step)
        if step == 2 and start == 0 and sys.argv[2] == "one":
            # As when its machine is lost. (After an exception a thread of theirs would keep it alive.)
            os.kill(os.getpid(), signal.SIGKILL)
    core_v2.train.report_validation_metrics(steps_completed=step, metrics={"loss": 0.25})
    op.report_completed(0.25)
core_v2.close()
"""


def test_the_published_sdk_reports_from_outside(cluster, published, tmp_path):
    before = cluster.newest_experiment()
    storage = tmp_path / "storage"
    run(cluster, published.python, PUBLISHED, tmp_path, storage, "one", status=-signal.SIGKILL)
    id = cluster.experiment_after(before)
    assert cluster.trials(id)[0]["state"] == "STATE_RUNNING"
    output = run(cluster, published.python, PUBLISHED, tmp_path, storage, "one")
    assert "begins at 2" in output
    run(cluster, published.python, PUBLISHED, tmp_path, storage, "two")
    experiment = cluster.wait_for_end(id)
    assert experiment["state"] == "STATE_COMPLETED"
    assert (experiment["name"], experiment["labels"], experiment["unmanaged"]) == (
        "with their SDK",
        ["outside"],
        True,
    )
    first, second = cluster.trials(id)
    assert [first["state"], second["state"]] == ["STATE_COMPLETED"] * 2
    assert (first["restarts"], second["restarts"]) == (1, 0)
    assert steps_of(cluster, first["id"], "training") == [(1, 1), (1, 2), (2, 3), (2, 4)]
    assert first["checkpointCount"] == 4
    assert experiment["bestTrialSearcherMetric"] == 0.25
    wait_for(lambda: "begins at 2" in cluster.logs(first["id"]), 60, "the lines of the script")
