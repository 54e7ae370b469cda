"""The client and the SDK of Determined 0.25.0, unchanged, on our cluster (REST spec, section 10)."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.fixtures.local_cluster import wait_for
from tests.gateway.running import Running

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("published")]
LISTINGS = Path(__file__).parents[1] / "dropin" / "listings"
SEARCH = [
    *("--config", "searcher.max_trials=3"),
    *("--config", "searcher.max_length=20"),
    *("--config", "reproducibility.experiment_seed=7"),
    *("--config", "checkpoint_storage.save_trial_latest=9"),
]


@pytest.fixture
def guide(tmp_path):
    """The listings of the Core API guide in a folder of the reader's own."""
    return shutil.copytree(LISTINGS, tmp_path / "core_api")


def left_by(cluster, experiment_id):
    """What a search left behind: trials, metrics, operations and checkpoints, without ids and times."""
    summaries = []
    for trial in cluster.trials(experiment_id):
        id = trial["id"]
        rows = {
            group: [
                (row["totalBatches"], row["metrics"]["avgMetrics"])
                for page in cluster.stream(f"trials/metrics/{group}_metrics", trialIds=id)
                for row in page["metrics"]
            ]
            for group in ("training", "validation")
        }
        checkpoints = [
            (c["metadata"]["steps_completed"], sorted(c["resources"]), c["state"])
            for c in cluster.get(f"trials/{id}/checkpoints")["checkpoints"]
        ]
        why = cluster.get(f"why/trial/{id}", verbose="true")
        operations = sorted(
            step["what"].replace(f"trial {id} ", "") for step in why["steps"] if "operation" in step["what"]
        )
        summaries.append(
            (trial["hparams"], trial["state"], trial["restarts"], rows, sorted(checkpoints), operations)
        )
    return summaries


def test_a_script_leaves_the_same_with_either_sdk(local_cluster, guide, published):
    cluster = local_cluster(slots=1)
    ours = cluster.create("3_hpsearch.yaml", guide, *SEARCH)
    assert cluster.wait_for_end(ours)["state"] == "STATE_COMPLETED"
    (worker,) = cluster.workers()
    cluster.stop(worker)
    cluster.start(
        worker,
        STEADFAST_WORKER_PYTHON=str(published.python),
        STEADFAST_WORKER_CONTAINER_PATHS="true",
    )
    other = cluster.create("3_hpsearch.yaml", guide, *SEARCH)
    assert cluster.wait_for_end(other)["state"] == "STATE_COMPLETED", cluster.logs(4)
    assert any("allocations" in line and "preemption" in line for line in cluster.logs(4))
    assert left_by(cluster, other) == left_by(cluster, ours)


FLOWS = [
    ("user whoami", r"You are logged in as user 'determined'"),
    ("user list", r"admin"),
    ("e list", r"1 \| determined \| core-api-stage-3 .*COMPLETED"),
    ("e list --csv", r"1,determined,core-api-stage-3"),
    ("e describe 1", r"core-api-stage-3"),
    ("e lt 1", r"COMPLETED"),
    ("e lc 1 --best 1", r"metadata\.json"),
    ("e logs 1 --head 3", r"debug-level message"),
    ("e config 1", r"max_trials: 3"),
    ("e label add 1 nice", r"Added label 'nice' to experiment 1"),
    ("e set name 1 Fine", r"Set name of experiment 1 to 'Fine'"),
    ("e set description 1 words", r"Set description of experiment 1 to 'words'"),
    ("e list", r"Fine"),
    ("e archive 1", r"Archived experiment 1"),
    ("e unarchive 1", r"Unarchived experiment 1"),
    ("e download-model-def 1", r""),
    ("t describe 1", r"COMPLETED"),
    ("t logs 1 --tail 2", r"Trial log stream ended"),
    ("t download 1 --best -o trial", r"trial"),
    ("agent list", r"default"),
    ("slot list", r"default"),
    ("job list", r"Job Name"),
    ("task list", r"Task ID"),
    ("template list", r"Name"),
    ("master info", r"version"),
    ("version", r"master_id"),
    ("preview-search 3_hpsearch.yaml", r"This search will create a total of"),
    ("e create wait.yaml . --paused", r"Created experiment 2"),
    ("e activate 2", r"Activated experiment 2"),
    ("e pause 2", r"Paused experiment 2"),
    ("e set priority 2 40", r"Set priority of experiment 2 to '40'|priority"),
    ("e kill 2", r"Killed experiment 2"),
]


WAIT = """\
name: waits
entrypoint: sleep 600
searcher: {name: single, metric: x, max_length: {batches: 1}}
max_restarts: 0
"""


def test_the_published_command(local_cluster, guide, theirs):
    cluster = local_cluster(slots=4)
    (guide / "wait.yaml").write_text(WAIT)
    created = theirs(cluster, "e", "create", "3_hpsearch.yaml", ".", *SEARCH, "-f", cwd=guide)
    assert "Created experiment 1" in created
    assert "Trial log stream ended" in created
    theirs(cluster, "e", "wait", "1", "--polling-interval", "1")
    for words, wanted in FLOWS:
        assert re.search(wanted, theirs(cluster, *words.split(), cwd=guide)), words
    described = json.loads(theirs(cluster, "e", "describe", "1", "--json"))
    assert described[0]["experiment"]["labels"] == ["nice"]
    assert len(json.loads(theirs(cluster, "slot", "list", "--json"))) == 4
    assert (guide / "experiment_1_model_def.tgz").stat().st_size > 0
    assert list((guide / "trial").rglob("state"))
    wait_for(lambda: cluster.experiment(2)["state"] == "STATE_CANCELED", 60, "experiment 2 to be killed")
    theirs(cluster, "e", "delete", "2", "--yes")
    theirs(cluster, "e", "describe", "99", status=1)
    wide = theirs(
        cluster, "e", "create", "wait.yaml", ".", "--config", "resources.slots_per_trial=64", cwd=guide
    )
    assert "Created experiment 3" in wide
    theirs(cluster, "e", "kill", "3")
    numbers = [f"--save-{what}=0" for what in ("experiment-best", "trial-best", "trial-latest")]
    assert "This policy will delete" in theirs(cluster, "e", "set", "gc-policy", "1", *numbers, typed="y\n")
    ran = theirs(cluster, "cmd", "run", "sh -c 'echo hello; exit 3'")
    assert "hello" in ran
    assert "task failed with exit code 3" in ran
    assert "resources exited successfully with a zero exit code" in theirs(cluster, "cmd", "run", "true")
    theirs(cluster, "e", "create", "1_metrics.yaml", ".", "-t", cwd=guide)


POOLS = """
resource_pools:
  - pool_name: default
  - pool_name: gpu
"""
TOLD_OF_POOLS = [
    ("workspace create nlp --default-aux-pool gpu", r"nlp"),
    ("workspace create vision", r"vision"),
    ("resource-pool bindings add gpu nlp", r"added bindings between the resource pool \"gpu\""),
    ("resource-pool bindings list-workspaces gpu", r"gpu +\| nlp"),
    ("workspace list-pools nlp", r"gpu"),
    ("workspace list-pools vision", r"default"),
    ("resource-pool bindings replace gpu nlp vision", r"replaced bindings"),
    ("resource-pool bindings remove gpu nlp", r"removed bindings"),
    ("resource-pool bindings list-workspaces gpu", r"gpu +\| vision"),
    ("resources aggregated 2000-01-01 2009-12-31", r"aggregation_type,aggregation_key,date,seconds"),
    ("resources aggregated --monthly 2000-01 2009-12 --json", r"resourceEntries"),
    ("resources raw 2000-01-01T00:00:00Z 2100-01-01T00:00:00Z", r"training,determined"),
    ("resources raw 2000-01-01T00:00:00Z 2100-01-01T00:00:00Z --json", r"training"),
]


def test_the_published_command_on_pools_and_their_use(local_cluster, guide, theirs, tmp_path, monkeypatch):
    pools = tmp_path / "pools.yaml"
    pools.write_text(POOLS)
    cluster = local_cluster(slots=1, pools_file=str(pools))
    theirs(cluster, "e", "create", "1_metrics.yaml", ".", "-f", cwd=guide)
    monkeypatch.setenv("DET_USER", "admin")
    monkeypatch.setenv("DET_PASS", cluster.password)
    for words, wanted in TOLD_OF_POOLS:
        output = theirs(cluster, *words.split(), cwd=guide)
        assert re.search(wanted, output), (words, output)
    assert "gpu" not in theirs(cluster, "workspace", "list-pools", "nlp")
    (guide / "elsewhere.yaml").write_text(WAIT + "resources: {resource_pool: gpu}\n")
    theirs(cluster, "e", "create", "elsewhere.yaml", ".", cwd=guide, status=1)


CLIENT = """
from determined.experimental import client
client.login()
experiment = client.create_experiment(config="3_hpsearch.yaml", model_dir=".")
trial = experiment.await_first_trial()
state = experiment.wait(interval=0.5)
assert state == client.ExperimentState.COMPLETED, state
best = experiment.top_checkpoint()
path = best.download(path="best")
rows = list(client.stream_trials_validation_metrics([trial.id]))
assert rows and rows[-1].metrics["x"] > 0, rows
assert rows[-1].total_batches == 40 or rows[-1].total_batches < 40
assert len(experiment.get_trials()) == 8
assert client.get_trial(trial.id).select_checkpoint(latest=True).uuid
lines = list(client.get_trial(trial.id).logs())
assert any("x is now" in line for line in lines)
print("state in", path, "by", best.uuid)
"""


def test_the_published_client(local_cluster, guide, theirs):
    cluster = local_cluster(slots=4)
    output = theirs(cluster, python=CLIENT, cwd=guide)
    assert "state in best by" in output
    assert (guide / "best" / "state").read_text().count(",") == 2


ASK_MUCH = """
from concurrent.futures import ThreadPoolExecutor
from determined.experimental import client
client.login(master="{address}", user="determined", password="")
for _ in range(60):
    client.get_models()
with ThreadPoolExecutor(50) as threads:
    list(threads.map(lambda _: client.get_models(), range(50)))
print("all answered")
"""


def test_their_client_gets_by_with_little(theirs, tmp_path, monkeypatch):
    monkeypatch.setenv("STEADFAST_REQUESTS_RATE", "5")
    running = Running(tmp_path).start()
    try:
        place = SimpleNamespace(address=f"http://127.0.0.1:{running.port}")
        assert "all answered" in theirs(place, python=ASK_MUCH.format(address=place.address))
    finally:
        running.close()
