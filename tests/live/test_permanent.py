"""A run that cannot succeed as it is written is tried once, by the launcher as without it."""

import pytest

CONFIG = """
name: permanent
entrypoint: {entrypoint}
searcher: {{name: single, metric: loss, max_length: {{batches: 1}}}}
max_restarts: 3
resources: {{slots_per_trial: {slots}}}
"""


@pytest.mark.timeout(300)
def test_a_missing_module_or_file_is_not_tried_again(cluster, tmp_path):
    (tmp_path / "train.py").write_text("import nowhere_to_be_found\n")
    launcher = "python3 -m determined.launch.torch_distributed python3 train.py"
    cases = {
        ("python3 train.py", 1): "No module named 'nowhere_to_be_found'",
        ("python3 trian.py", 1): "can't open file",
        ("trian --now", 1): "not found",
        (launcher, 2): "No module named 'nowhere_to_be_found'",
    }
    ids = {}
    for number, ((entrypoint, slots), expected) in enumerate(cases.items()):
        name = f"{number}.yaml"
        (tmp_path / name).write_text(CONFIG.format(entrypoint=entrypoint, slots=slots))
        ids[cluster.create(name, tmp_path)] = expected
    for id, expected in ids.items():
        assert cluster.wait_for_end(id)["state"] == "STATE_ERROR"
        (trial,) = cluster.trials(id)
        details = cluster.get(f"trials/{trial['id']}")["trial"]
        assert (details["restarts"], details["state"]) == (0, "STATE_ERROR")
        assert expected in details["stateReason"]
        assert "not tried again" in details["stateReason"]
