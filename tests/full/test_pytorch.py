"""PyTorch trials on a cluster: searched over, spread out, disturbed, and the same in the end."""

import shutil
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import wait_for
from tests.fixtures.reading import reported

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pytestmark = pytest.mark.timeout(900)
EXAMPLE = Path(__file__).parents[2] / "examples" / "pytorch_mnist"
SEEDED = ("--config", "reproducibility.experiment_seed=7")
SMALL_SEARCH = (
    *SEEDED,
    *("--config", "searcher.max_trials=4"),
    *("--config", "searcher.max_length.epochs=4"),
    # One after the other, so that what the search decides does not hang on who is faster.
    *("--config", "searcher.max_concurrent_trials=1"),
)


@pytest.fixture
def example(tmp_path):
    return shutil.copytree(
        EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("mnist", "__pycache__")
    )


def weights(cluster, id):
    """Of each trial, those of its last checkpoint: by trial and steps."""
    latest = {}
    for checkpoint in cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]:
        trial, done = checkpoint["training"]["trialId"], checkpoint["metadata"]["steps_completed"]
        latest[trial] = max(latest.get(trial, (0, "")), (done, checkpoint["uuid"]))
    # By their names: older ones are just being removed, and a search would come across them.
    folder = cluster.home.path / "checkpoints"
    return {(trial, at): _first_model(folder / uuid) for trial, (at, uuid) in latest.items()}


def _first_model(checkpoint):
    return torch.load(checkpoint / "state_dict.pth", weights_only=False)["models_state_dict"][0]


def steps(cluster, id):
    return sum(len(rows) for _, _, rows in reported(cluster, id))


def wait_for_steps(cluster, id, more):
    before = steps(cluster, id)
    wait_for(lambda: steps(cluster, id) >= before + more, 60, f"{more} reports")


def pause_and_go_on(cluster, id):
    cluster.tell(id, "pause")
    wait_for(lambda: cluster.experiment(id)["state"] == "STATE_PAUSED", 60, "the pause")
    wait_for(
        lambda: all(trial["state"] in ("STATE_PAUSED", "STATE_COMPLETED") for trial in cluster.trials(id)),
        60,
        "the trials to pause",
    )
    cluster.tell(id, "activate")


def busy_worker(cluster):
    """The worker that runs something."""
    agents = cluster.get("agents")["agents"]
    return next(
        (agent["id"] for agent in agents if any(slot.get("container") for slot in agent["slots"].values())),
        None,
    )


def test_a_disturbed_search_ends_as_a_calm_one(local_cluster, example):
    calm = local_cluster(agents=2, slots=1)
    id = calm.create("adaptive.yaml", example, *SMALL_SEARCH)
    assert calm.wait_for_end(id, 180)["state"] == "STATE_COMPLETED"
    expected, last = reported(calm, id), weights(calm, id)
    calm.down()
    assert len(expected) == 4
    assert all(state == "STATE_COMPLETED" for _, state, _ in expected)

    rough = local_cluster(agents=2, slots=1)
    id = rough.create("adaptive.yaml", example, *SMALL_SEARCH)
    for _ in range(2):
        wait_for_steps(rough, id, 3)
        pause_and_go_on(rough, id)
    wait_for_steps(rough, id, 2)
    busy = []
    wait_for(lambda: busy.append(busy_worker(rough)) or busy[-1], 60, "a trial to run")
    victim = busy[-1]
    rough.lose_machine(victim)
    rough.start(victim)
    assert rough.wait_for_end(id, 240)["state"] == "STATE_COMPLETED"
    assert reported(rough, id) == expected
    again = weights(rough, id)
    # What is searched for is told first, so the machine may have taken a trial's last checkpoint along.
    both = last.keys() & again.keys()
    assert len(both) >= 3
    for at in both:
        assert all(torch.equal(last[at][name], again[at][name]) for name in last[at])


def test_one_trial_over_two_workers(two_workers, example):
    cluster = two_workers
    calm, rough = (cluster.create("distributed.yaml", example, *SEEDED) for _ in range(2))
    wait_for(lambda: len(reported(cluster, rough)) == 1 and steps(cluster, rough) > 3, 240, "some reports")
    pause_and_go_on(cluster, rough)
    for id in (calm, rough):
        assert cluster.wait_for_end(id, 240)["state"] == "STATE_COMPLETED"
    ((_, state, expected),), ((_, _, actual),) = reported(cluster, calm), reported(cluster, rough)
    assert state == "STATE_COMPLETED"
    # 1,500 images in batches of 16 on 4 slots: 24 batches of each rank make an epoch.
    assert [at for kind, at in expected if kind == "validation"] == [24, 48, 72, 96]
    assert expected["validation", 96]["accuracy"] > 0.8
    # In its first batch DDP lays gradients out in another way than later: sums of more than two ranks may
    # then differ in their last bit.
    assert actual.keys() == expected.keys()
    assert all(actual[at] == pytest.approx(metrics, rel=1e-4) for at, metrics in expected.items())
    (last,), (again,) = (weights(cluster, id).values() for id in (calm, rough))
    for name in last:
        torch.testing.assert_close(last[name], again[name], rtol=1e-3, atol=1e-5)


@pytest.fixture
def digits(tmp_path):
    for needed in ("transformers", "accelerate"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    return shutil.copytree(EXAMPLE.parent / "transformers_digits", tmp_path / "digits")


def of_hugging_face(cluster, id):
    """Metrics by kind and step of a trial that was never restarted, without times."""
    assert cluster.wait_for_end(id, 240)["state"] == "STATE_COMPLETED"
    ((_, state, rows),) = reported(cluster, id)
    assert (state, cluster.trials(id)[0]["restarts"]) == ("STATE_COMPLETED", 0)
    return {
        at: {k: v for k, v in row.items() if "second" not in k and "runtime" not in k}
        for at, row in rows.items()
    }


def test_a_trainer_of_hugging_face(cluster, digits):
    calm, rough = (cluster.create("const.yaml", digits, *SEEDED) for _ in range(2))
    wait_for(lambda: cluster.get(f"experiments/{rough}/checkpoints")["checkpoints"], 120, "a checkpoint")
    pause_and_go_on(cluster, rough)
    expected, actual = of_hugging_face(cluster, calm), of_hugging_face(cluster, rough)
    # 1,500 images in batches of 16 are 94 steps.
    epochs = [("validation", 94 * n) for n in range(1, 13)]
    assert [at for at in expected if at[0] == "validation"] == epochs
    assert {at: actual[at] for at in epochs} == {at: expected[at] for at in epochs}
    assert expected[epochs[-1]]["eval_accuracy"] > 0.8


def test_two_processes_of_hugging_face(cluster, digits):
    id = cluster.create("distributed.yaml", digits, *SEEDED)
    wait_for(lambda: cluster.get(f"experiments/{id}/checkpoints")["checkpoints"], 120, "a checkpoint")
    pause_and_go_on(cluster, id)
    metrics = of_hugging_face(cluster, id)
    # Both share an epoch, and the pause left no gap.
    assert {("validation", 94 * n) for n in range(1, 13)} <= set(metrics)
    assert metrics["validation", 94 * 12]["eval_accuracy"] > 0.8


@pytest.fixture
def lightning_digits(tmp_path):
    pytest.importorskip("lightning", reason="lightning is not installed")
    return shutil.copytree(EXAMPLE.parent / "lightning_digits", tmp_path / "lightning")


def test_a_trainer_of_lightning(cluster, lightning_digits):
    calm, rough = (cluster.create("const.yaml", lightning_digits, *SEEDED) for _ in range(2))
    wait_for(lambda: cluster.get(f"experiments/{rough}/checkpoints")["checkpoints"], 120, "a checkpoint")
    pause_and_go_on(cluster, rough)
    expected, actual = of_hugging_face(cluster, calm), of_hugging_face(cluster, rough)
    epochs = [("validation", 94 * n) for n in range(1, 13)]
    for run, rows in {"calm": expected, "paused": actual}.items():
        assert [at for at in rows if at[0] == "validation"] == epochs, (run, sorted(rows))
        assert rows[epochs[-1]]["val_accuracy"] > 0.93


def test_two_processes_of_lightning(cluster, lightning_digits):
    id = cluster.create("distributed.yaml", lightning_digits, *SEEDED)
    metrics = of_hugging_face(cluster, id)
    # Both share an epoch of 1,500 images in batches of 16.
    assert metrics["validation", 47 * 12]["val_accuracy"] > 0.9
