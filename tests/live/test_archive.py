"""A cluster whose log is moved to the archive while it works; then everything is made again from there."""

import pytest

from det_contracts import subjects
from tests.fixtures.local_cluster import wait_for
from tests.fixtures.s3_server import BUCKET, KEY, SECRET, s3_server

pytestmark = pytest.mark.timeout(300)
PLAN = {"slots": 2}
CONFIG = """
name: archived
entrypoint: python3 train.py
searcher: {name: random, metric: loss, max_length: 2, max_trials: 6}
max_restarts: 0
"""
SCRIPT = """
import determined as det
with det.core.init() as core:
    for op in core.searcher.operations():
        core.train.report_training_metrics(1, {"loss": 1.0})
        core.train.report_validation_metrics(op.length, {"loss": 0.5})
        op.report_completed(0.5)
"""
OWNERS = ("gateway", "metrics", "searcher", "scheduler", "checkpoints", "webhooks")


@pytest.fixture(params=["directory", pytest.param("bucket", marks=pytest.mark.full)])
def place(request, tmp_path):
    """Where the archive lies, as settings."""
    if request.param == "directory":
        yield {"STEADFAST_ARCHIVE": str(tmp_path / "archive")}
        return
    with s3_server(tmp_path) as url:
        yield {
            "STEADFAST_ARCHIVE": f"s3://{BUCKET}/archive",
            "STEADFAST_S3_ENDPOINT_URL": url,
            "STEADFAST_S3_ACCESS_KEY": KEY,
            "STEADFAST_S3_SECRET_KEY": SECRET,
        }


@pytest.fixture
def cluster(local_cluster, place):
    settings = place | {
        "STEADFAST_ARCHIVE_SEGMENT_EVENTS": "100",
        "STEADFAST_ARCHIVE_KEEP_EVENTS": "0",
        "STEADFAST_ARCHIVE_KEEP_DAYS": "0",
        "STEADFAST_ARCHIVE_LOOK_S": "0.2",
    }
    return local_cluster(settings=settings, **PLAN)


def experiment(cluster, folder):
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "config.yaml").write_text(CONFIG)
    id = cluster.create("config.yaml", folder)
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    return id


def answers(cluster, id):
    trials = cluster.trials(id)
    kinds = [("experiment", id), *(("trial", trial["id"]) for trial in trials)]
    return (
        cluster.experiment(id),
        trials,
        [cluster.get(f"why/{kind}/{each}") for kind, each in kinds],
        [cluster.get(f"why/{kind}/{each}", all=True) for kind, each in kinds],
        [cluster.logs(trial["id"]) for trial in trials],
        cluster.get(f"experiments/{id}/timeline")["stretches"],
    )


@pytest.mark.full
def test_a_log_that_is_moved_while_a_cluster_works_answers_as_before(cluster, tmp_path):
    first = experiment(cluster, tmp_path / "first")

    def stands():
        return cluster.get("master/archive")

    def settled():
        """All of the first experiment's events, the quiet owners' newest decisions among them, have left."""
        return stands()["first"] > end

    before = answers(cluster, first)
    end = stands()["last"]
    second = experiment(cluster, tmp_path / "second")
    wait_for(settled, 60, "the first experiment's events to leave the broker")
    assert answers(cluster, first) == before
    later = answers(cluster, second)
    for owner in OWNERS:
        cluster.stop(owner)
        for path in (cluster.home.path / "databases").glob(f"{owner}.db*"):
            path.unlink()
    for owner in OWNERS:
        cluster.start(owner)
    wait_for(lambda: cluster.experiment(second), 60, "the gateway to be back")
    assert answers(cluster, first) == before
    assert answers(cluster, second) == later
    assert experiment(cluster, tmp_path / "third") > second
    assert "begins at position" not in "".join(cluster.log(owner) for owner in OWNERS)
    assert subjects.ARCHIVE in cluster.names()
