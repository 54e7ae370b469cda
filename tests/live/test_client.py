"""The Python client against a cluster: create, wait, read, choose and download."""

import contextlib
import json

import pytest

from determined.common.api.errors import APIException, ForbiddenException, NotFoundException
from determined.errors import CheckpointStateException
from determined.experimental import client
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)

SCRIPT = """
import determined as det
from determined import core

with core.init() as context:
    info = det.get_cluster_info()
    lr = info.trial.hparams["lr"]
    for operation in context.searcher.operations():
        for step in range(2, operation.length + 1, 2):
            print("step", step, flush=True)
            context.train.report_training_metrics(step, {"loss": lr / step})
            context.train.report_validation_metrics(step, {"error": lr / step, "accuracy": step + lr})
            with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                (path / "weights").write_text(f"{lr} {step}")
        operation.report_completed(lr / operation.length)
"""
CONFIG = {
    "name": "client",
    "entrypoint": "python3 train.py",
    "hyperparameters": {"lr": {"type": "categorical", "vals": [1.0, 2.0]}},
    "searcher": {"name": "grid", "metric": "error", "max_length": {"batches": 4}},
    "checkpoint_storage": {"save_experiment_best": 9, "save_trial_best": 9, "save_trial_latest": 9},
    "max_restarts": 0,
}


@pytest.fixture(autouse=True)
def connected(cluster, monkeypatch, tmp_path):
    """A fresh process' worth of client."""
    monkeypatch.setenv("DET_MASTER", cluster.address)
    monkeypatch.setenv("DET_DEBUG_CONFIG_PATH", str(tmp_path / "configuration"))
    monkeypatch.setattr("determined.experimental._client_connection._determined", None)


@pytest.fixture(scope="module")
def finished(shared_cluster, tmp_path_factory):
    """The id of an experiment with two trials, created with the client and waited for."""
    code = tmp_path_factory.mktemp("code")
    (code / "train.py").write_text(SCRIPT)
    configuration = tmp_path_factory.mktemp("configuration")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_DEBUG_CONFIG_PATH", str(configuration))
        connection = client.Determined(shared_cluster.address)
        experiment = connection.create_experiment(CONFIG, code)
        assert experiment.await_first_trial().id >= 1
        assert experiment.wait(interval=0.1) is client.ExperimentState.COMPLETED
    return experiment.id


def test_trials_and_configuration(finished):
    experiment = client.get_experiment(finished)
    trials = experiment.get_trials()
    assert len(trials) == 2
    assert [t.id for t in experiment.get_trials(order_by=client.TrialOrderBy.DESC)] == [
        t.id for t in reversed(trials)
    ]
    assert experiment.get_config()["searcher"]["metric"] == "error"


def test_metrics(finished):
    first = client.get_experiment(finished).get_trials()[0]
    training = list(first.stream_training_metrics())
    assert [report.steps_completed for report in training] == [2, 4]
    assert {(report.trial_id, report.trial_run_id, tuple(report.metrics)) for report in training} == {
        (first.id, 1, ("loss",))
    }
    ids = [trial.id for trial in client.get_experiment(finished).get_trials()]
    both = list(client.stream_trials_validation_metrics(ids))
    assert [(report.trial_id, report.total_batches) for report in both] == [
        (id, n) for id in ids for n in (2, 4)
    ]
    assert set(both[0].metrics) == {"error", "accuracy"}


def test_logs(finished):
    trial = client.get_experiment(finished).get_trials()[0]
    everything = list(trial.logs())
    assert list(trial.logs(follow=True)) == everything
    assert all(line.endswith("\n") for line in everything)
    assert any("step 2" in line for line in everything)
    assert list(trial.logs(head=3)) == everything[:3]
    assert list(trial.logs(tail=3)) == everything[-3:]


def test_best_checkpoints(finished):
    experiment = client.get_experiment(finished)
    up = experiment.top_n_checkpoints(9, sort_by="accuracy", smaller_is_better=True)
    down = experiment.top_n_checkpoints(9, sort_by="accuracy", smaller_is_better=False)
    assert [checkpoint.training.trial_id for checkpoint in up] == [
        checkpoint.training.trial_id for checkpoint in reversed(down)
    ]
    best = experiment.top_checkpoint()
    assert best.metadata["steps_completed"] == 4
    assert best.training.validation_metrics["avgMetrics"]["error"] == 0.25
    assert len(experiment.top_n_checkpoints(9)) == 2


def test_checkpoints_of_a_trial(finished):
    trial = client.get_experiment(finished).get_trials()[0]
    checkpoints = trial.get_checkpoints(client.CheckpointSortBy.BATCH_NUMBER, client.CheckpointOrderBy.DESC)
    assert [checkpoint.metadata["steps_completed"] for checkpoint in checkpoints] == [4, 2]
    assert trial.select_checkpoint(latest=True).uuid == trial.top_checkpoint().uuid == checkpoints[0].uuid
    assert trial.select_checkpoint(uuid=checkpoints[1].uuid).metadata["steps_completed"] == 2
    assert (
        trial.select_checkpoint(best=True, sort_by="accuracy", smaller_is_better=True).uuid
        == checkpoints[1].uuid
    )


@pytest.mark.parametrize("mode", list(client.DownloadMode))
def test_download(finished, tmp_path, mode):
    checkpoint = client.get_experiment(finished).top_checkpoint()
    same = client.get_checkpoint(checkpoint.uuid)
    path = same.download(tmp_path / "here", mode)
    assert (tmp_path / "here" / "weights").read_text() == "1.0 4"
    assert json.loads((tmp_path / "here" / "metadata.json").read_text())["steps_completed"] == 4
    assert path == str(tmp_path / "here")


def test_a_paused_experiment_is_not_waited_for(cluster, tmp_path):
    (tmp_path / "train.py").write_text("import time\ntime.sleep(600)\n")
    experiment = client.create_experiment({**CONFIG, "name": "long"}, tmp_path)
    experiment.pause()
    with pytest.raises(ValueError, match="paused"):
        experiment.wait(interval=0.1)
    experiment.kill()
    assert experiment.wait(interval=0.1) is client.ExperimentState.CANCELED
    experiment.archive()
    assert cluster.experiment(experiment.id)["archived"]
    experiment.unarchive()


def test_metadata_survives(finished):
    checkpoint = client.get_experiment(finished).top_checkpoint()
    checkpoint.add_metadata({"note": "good", "more": [1, {"a": None}]})
    checkpoint.remove_metadata(["more", "unknown"])
    again = client.get_checkpoint(checkpoint.uuid)
    assert again.metadata == checkpoint.metadata == {"steps_completed": 4, "note": "good"}
    checkpoint.remove_metadata(["note"])


def test_the_registry(finished):
    checkpoint = client.get_experiment(finished).top_checkpoint()
    model = client.create_model("letters small", "small", {"owner": "ann"})
    assert client.get_model("letters small").model_id == model.model_id
    assert client.get_model(model.model_id).to_json() == model.to_json()
    assert model.get_version() is None
    version = model.register_version(checkpoint.uuid)
    version.set_name("first")
    version.set_notes("of many")
    newest = model.get_version()
    assert (newest.model_version, newest.name, newest.notes) == (1, "first", "of many")
    assert newest.checkpoint.uuid == checkpoint.uuid
    with pytest.raises(NotFoundException):
        model.get_version(7)
    with pytest.raises(APIException, match="registered"):
        checkpoint.delete()
    model.add_metadata({"size": 3})
    model.remove_metadata(["owner"])
    model.set_labels(["of letters", "small one"])
    model.set_description("smaller")
    model.archive()
    stored_model = client.get_model(model.model_id)
    assert (stored_model.metadata, sorted(stored_model.labels), stored_model.description) == (
        {"size": 3},
        ["of letters", "small one"],
        "smaller",
    )
    assert stored_model.archived
    model.unarchive()
    assert [listed.name for listed in client.get_models(name="letters small")] == ["letters small"]
    assert [listed.name for listed in client.get_models(name="letters%")] == ["letters small"]
    assert client.get_models(name="letters") == []
    assert {"of letters", "small one"} <= set(client.get_model_labels())
    version.delete()
    model.delete()
    with pytest.raises(NotFoundException):
        client.get_model(model.model_id)


def test_users(cluster):
    admin = client.Determined(user="admin", password="")
    ann = admin.create_user("ann", admin=False, password="first")
    assert admin.get_user_by_id(ann.user_id).username == "ann"
    ann.change_display_name("Ann")
    ann.rename("anna")
    ann.link_with_agent(agent_gid=1, agent_uid=2, agent_group="g", agent_user="u")
    user = admin.get_user_by_name("anna")
    assert (user.display_name, user.agent_uid, user.agent_group) == ("Ann", 2, "g")
    ann.change_password("second")
    assert client.Determined(user="anna", password="second").whoami().username == "anna"
    with pytest.raises(ForbiddenException):
        client.Determined(user="anna", password="second").create_user("bob", admin=False)
    ann.deactivate()
    with pytest.raises(ForbiddenException, match="not active"):
        client.Determined(user="anna", password="second").whoami()
    ann.activate()


def test_checkpoints_go(cluster, finished):
    trial = client.get_experiment(finished).get_trials()[-1]
    checkpoint = trial.select_checkpoint(latest=True)
    checkpoint.remove_files(["weights"])
    partly = client.CheckpointState.PARTIALLY_DELETED
    wait_for(lambda: client.get_checkpoint(checkpoint.uuid).state is partly, 60, "the file to be removed")

    def gone():
        # Refused while the task that removes files is at work.
        with contextlib.suppress(APIException):
            checkpoint.delete()
        return client.get_checkpoint(checkpoint.uuid).state is client.CheckpointState.DELETED

    wait_for(gone, 60, "the checkpoint to be deleted")
    with pytest.raises(CheckpointStateException):
        client.get_checkpoint(checkpoint.uuid).download()


def test_unknown_things(finished):
    assert client.whoami().username == client.get_session_username() == "determined"
    assert "determined" in {user.username for user in client.list_users()}
    with pytest.raises(NotFoundException):
        client.get_experiment(999_999).wait()
    with pytest.raises(NotFoundException):
        client.get_trial(999_999).kill()
    with pytest.raises(NotFoundException):
        client.get_checkpoint("00000000-0000-0000-0000-000000000000")
