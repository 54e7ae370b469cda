import pytest

import determined as det
from tests.sdk.core.cluster_files import CLUSTER, write_cluster_files


def test_off_cluster_there_is_none_and_the_answer_is_kept(fresh_info):
    assert det.get_cluster_info() is None
    write_cluster_files(fresh_info)
    assert det.get_cluster_info() is None


def test_a_trial_sees_everything(fresh_info):
    write_cluster_files(fresh_info, latest_checkpoint="uuid-1")
    info = det.get_cluster_info()
    assert info is det.get_cluster_info()
    assert {name: getattr(info, name) for name in CLUSTER} == {**CLUSTER, "latest_checkpoint": "uuid-1"}
    assert info.user_data == {"path": "/data"}
    assert (info.container_addrs, info.container_rank, info.container_slot_counts) == (["10.0.0.1"], 0, [1])
    assert info.gpu_uuids == ["GPU-1"]
    trial = info.trial
    assert (trial.trial_id, trial.experiment_id, trial.trial_seed) == (7, 3, 42)
    assert trial.hparams == {"increment_by": 2}
    assert (trial._steps_completed, trial._trial_run_id, trial._debug) == (0, 1, False)
    assert trial._inter_node_network_interface is None
    assert trial._config["searcher"]["name"] == "single"


def test_other_tasks_have_no_trial(fresh_info):
    write_cluster_files(fresh_info, task_type="COMMAND", slot_ids=[0, 1], latest_checkpoint="uuid-1")
    info = det.get_cluster_info()
    assert info.latest_checkpoint is None
    assert info.user_data == {}
    assert (info.container_addrs, info.container_rank, info.container_slot_counts) == (["127.0.0.1"], 0, [2])
    with pytest.raises(RuntimeError, match="TRIAL"):
        _ = info.trial


def test_missing_files_raise_when_read(fresh_info):
    write_cluster_files(fresh_info)
    for name in ("trial", "rendezvous", "resources"):
        (fresh_info / f"{name}.json").unlink()
    info = det.get_cluster_info()
    needed = {"trial": "trial", "container_addrs": "rendezvous", "gpu_uuids": "resources"}
    for attribute, file in needed.items():
        with pytest.raises(AssertionError, match=rf"{file}\.json"):
            getattr(info, attribute)


@pytest.mark.parametrize("content", ["{half", "[]", '{"master_url": "x"}', '{"surprise": 1}'])
def test_an_unreadable_file_is_named(fresh_info, content):
    write_cluster_files(fresh_info)
    (fresh_info / "cluster.json").write_text(content)
    with pytest.raises(RuntimeError, match=r"cluster\.json does not describe a ClusterInfo"):
        det.get_cluster_info()
