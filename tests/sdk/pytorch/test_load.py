"""Trials from checkpoints, ours and older ones (Trainer spec, sections 12, 13 and 17)."""

import importlib
import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from determined import pytorch
from determined.pytorch import Batch
from tests.sdk.pytorch.trials import OneVar, Random

MODEL_DEF = """
from tests.sdk.pytorch.trials import OneVar

class Kept(OneVar):
    def __init__(self, context, note=None):
        super().__init__(context)
        self.rate = context.get_hparam("rate")
        self.note = note
"""
HPARAMS = {"rate": 0.5}


def fit(kind, *, hparams=None, exp_conf=None, **options):
    uuids = []

    class Keep(pytorch.PyTorchCallback):
        def on_checkpoint_upload_end(self, uuid):
            uuids.append(uuid)

    kind.build_callbacks = lambda self: {"keep": Keep()}
    with pytorch.init(hparams=hparams, exp_conf=exp_conf, enable_tensorboard_logging=False) as context:
        trial = kind(context)
        pytorch.Trainer(trial, context).fit(**{"max_length": Batch(3)} | options)
    return trial, uuids


@pytest.fixture
def own_code(folder, monkeypatch):
    """A trial class of a file in the current folder."""
    (folder / "code" / "kept_def.py").write_text(MODEL_DEF)
    monkeypatch.syspath_prepend(str(folder / "code"))
    yield importlib.import_module("kept_def").Kept
    sys.modules.pop("kept_def", None)


@pytest.fixture
def saved(own_code, folder):
    """(trial, folder of its checkpoint); the code itself is gone."""
    trial, (uuid,) = fit(own_code, hparams=HPARAMS, exp_conf={"searcher": {"metric": "x"}})
    (path,) = (folder / "data").rglob(uuid)
    (folder / "code" / "kept_def.py").unlink()
    sys.modules.pop("kept_def")
    return trial, path


def test_what_a_checkpoint_holds(saved):
    _, path = saved
    state = torch.load(path / "state_dict.pth", weights_only=False)
    assert set(state) == {
        *("models_state_dict", "optimizers_state_dict", "lr_schedulers_state_dict"),
        *("callbacks", "rng_state"),
    }
    rng = {"cpu_rng_state", "np_rng_state", "random_rng_state"}
    assert set(state["rng_state"]) - {"gpu_rng_state"} == rng
    counters = pickle.loads((path / "trial_state.pkl").read_bytes())
    assert counters == {
        "trial_id": 0,
        "batches_trained": 3,
        "epochs_trained": 0,
        "last_val": 3,
        "last_ckpt": 3,
        "step_id": 1,
    }
    assert json.loads((path / "load_data.json").read_text()) == {
        "trial_type": "PyTorchTrial",
        "experiment_config": {"searcher": {"metric": "x"}},
        "hparams": HPARAMS,
        "trial_cls_spec": "kept_def:Kept",
        "is_trainer": True,
    }
    answer = json.loads((path / "metadata.json").read_text())
    assert answer["steps_completed"] == 3
    assert (answer["framework"], answer["format"]) == (f"torch-{torch.__version__}", "pickle")


def test_a_trial_from_its_own_code(saved):
    trial, path = saved
    loaded = pytorch.load_trial_from_checkpoint_path(str(path), trial_kwargs={"note": "mine"})
    assert type(loaded).__name__ == "Kept"
    assert (loaded.rate, loaded.note, loaded.weight) == (0.5, "mine", trial.weight)
    assert loaded.weight != 0


def test_a_class_given_counts(saved):
    trial, path = saved
    loaded = pytorch.load_trial_from_checkpoint_path(str(path), trial_class=OneVar)
    assert type(loaded) is OneVar
    assert loaded.weight == trial.weight


@pytest.mark.parametrize("name", ["__main__:Kept", "gone:Kept", "kept_def:Nothing", "kept_def:OneVar.weight"])
def test_a_class_that_cannot_be_imported(saved, name):
    _, path = saved
    answer = json.loads((path / "load_data.json").read_text())
    (path / "load_data.json").write_text(json.dumps(answer | {"trial_cls_spec": name}))
    with pytest.raises(ValueError, match="pass trial_class"):
        pytorch.load_trial_from_checkpoint_path(str(path))


def test_a_folder_that_is_no_checkpoint(folder):
    with pytest.raises(AssertionError, match=r"neither load_data\.json nor metadata\.json"):
        pytorch.load_trial_from_checkpoint_path(str(folder))


def test_options_of_torch_load(saved, caplog):
    _, path = saved
    with pytest.raises(ValueError, match="not both"):
        pytorch.load_trial_from_checkpoint_path(
            str(path), torch_load_kwargs={"map_location": "cpu"}, weights_only=False
        )
    pytorch.load_trial_from_checkpoint_path(str(path), map_location="cpu")
    assert "deprecated" in caplog.text


class Harmful:
    """Runs code as soon as it is unpickled."""

    def __reduce__(self):
        return (Path("harmed").touch, ())


def test_what_could_run_code_is_not_loaded_unasked(saved):
    trial, path = saved
    state = torch.load(path / "state_dict.pth", weights_only=False)
    torch.save(state | {"callbacks": Harmful()}, path / "state_dict.pth")
    with pytest.raises(RuntimeError, match='"weights_only": False'):
        pytorch.load_trial_from_checkpoint_path(str(path))
    assert not Path("harmed").exists()
    loaded = pytorch.load_trial_from_checkpoint_path(str(path), torch_load_kwargs={"weights_only": False})
    assert loaded.weight == trial.weight


def rewritten(path, change):
    state = torch.load(path / "state_dict.pth", weights_only=False)
    change(state)
    torch.save(state, path / "state_dict.pth")


@pytest.mark.parametrize("name", ["determined/state_dict.pth", "pedl/state_dict.pth", "checkpoint.pt"])
def test_older_places_of_the_state(saved, name):
    trial, path = saved
    (path / name).parent.mkdir(exist_ok=True)
    (path / "state_dict.pth").rename(path / name)
    assert pytorch.load_trial_from_checkpoint_path(str(path)).weight == trial.weight


def as_single(state):
    for new, old in (
        ("models_state_dict", "model_state_dict"),
        ("optimizers_state_dict", "optimizer_state_dict"),
    ):
        (state[old],) = state.pop(new)


def test_older_keys(saved):
    trial, path = saved
    rewritten(path, as_single)
    assert pytorch.load_trial_from_checkpoint_path(str(path)).weight == trial.weight
    rewritten(path, lambda state: state.update(models_state_dict=[]))
    with pytest.raises(RuntimeError, match="both model_state_dict and models_state_dict"):
        pytorch.load_trial_from_checkpoint_path(str(path))


def test_metadata_of_0_17_and_before(saved):
    trial, path = saved
    (path / "load_data.json").unlink()
    config = {"entrypoint": "kept_def:Kept"}
    (path / "metadata.json").write_text(json.dumps({"experiment_config": config, "hparams": {"rate": 4.0}}))
    loaded = pytorch.load_trial_from_checkpoint_path(str(path))
    assert (loaded.rate, loaded.weight) == (4.0, trial.weight)
    assert loaded.context.get_experiment_config() == config


def test_weights_of_a_replica(saved):
    trial, path = saved

    def wrap(state):
        (model,) = state["models_state_dict"]
        state["models_state_dict"] = [{f"module.{name}": value for name, value in model.items()}]

    rewritten(path, wrap)
    assert pytorch.load_trial_from_checkpoint_path(str(path)).weight == trial.weight


def test_weights_of_another_shape(saved):
    _, path = saved
    rewritten(path, lambda state: state["models_state_dict"][0].update(weight=torch.zeros(2, 2)))
    with pytest.raises(RuntimeError, match="size mismatch"):
        pytorch.load_trial_from_checkpoint_path(str(path), trial_class=OneVar)


# -- resuming from older files


def resumed(uuid, **options):
    return fit(Random, latest_checkpoint=uuid, **{"max_length": Batch(5)} | options)[0]


@pytest.fixture
def stored(folder):
    """(uuid, folder) of three batches of a trial with shuffled data and dropout."""
    _, (uuid,) = fit(Random)
    (path,) = (folder / "data").rglob(uuid)
    return uuid, path


def test_counters_of_old(stored):
    uuid, path = stored
    whole = resumed(uuid)
    counters = pickle.loads((path / "trial_state.pkl").read_bytes())
    counters["steps_completed"] = counters.pop("batches_trained")
    (path / "workload_sequencer.pkl").write_bytes(pickle.dumps(counters))
    (path / "trial_state.pkl").unlink()
    assert resumed(uuid).batches == whole.batches
    assert [index for index, _ in whole.batches] == [3, 4]


def test_what_may_be_missing(stored, caplog):
    uuid, path = stored
    rewritten(path, lambda state: state.update(scaler_state_dict={"scale": 2.0}))
    rewritten(path, lambda state: state.pop("rng_state"))
    (path / "resume.pth").unlink()
    assert len(resumed(uuid).batches) == 2
    assert "holds no random state" in caplog.text
    assert "gradient scaler, which this trial does not use" in caplog.text


def test_a_callback_that_finds_nothing(stored, caplog):
    class Hopeful(pytorch.PyTorchCallback):
        def load_state_dict(self, state_dict):
            raise AssertionError

    class Trial(Random):
        pass

    with pytorch.init(enable_tensorboard_logging=False) as context:
        Trial.build_callbacks = lambda self: {"hopeful": Hopeful()}
        pytorch.Trainer(Trial(context), context).fit(max_length=Batch(4), latest_checkpoint=stored[0])
    assert "hopeful" in caplog.text


# -- with the published package


TRAIN = """
import logging, torch
from determined import pytorch
from their_def import Trial

logging.basicConfig(level=logging.INFO)
with pytorch.init(hparams={"rate": 0.01}, exp_conf={"searcher": {"metric": "loss"}}) as context:
    trial = Trial(context)
    pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(4), checkpoint_policy="none")
print("weights", torch.cat([p.detach().flatten() for p in trial.model.parameters()]).tolist())
"""
LOAD = """
import sys, torch
from determined import pytorch

trial = pytorch.load_trial_from_checkpoint_path(sys.argv[1], torch_load_kwargs={"weights_only": False})
print("weights", torch.cat([p.detach().flatten() for p in trial.model.parameters()]).tolist())
"""
THEIR_DEF = """
import torch
from torch import nn
from determined import pytorch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        return torch.tensor([float(index)]), torch.tensor([float(index)])

class Trial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1)))
        rate = context.get_hparam("rate")
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), rate, momentum=0.9))
        self.batches = []

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.batches.append(batch_idx)
        loss = nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"loss": nn.functional.mse_loss(self.model(batch[0]), batch[1])}

    def build_training_data_loader(self):
        return pytorch.DataLoader(Data(), 2)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Data(), 2)
"""


def weights_told(output):
    (line,) = [line for line in output.splitlines() if line.startswith("weights ")]
    return torch.tensor(json.loads(line.removeprefix("weights ")))


@pytest.fixture
def theirs(published, folder):
    """Runs a script in the published package's environment; returns what it printed."""
    (folder / "code" / "their_def.py").write_text(THEIR_DEF)

    def run(script, *words):
        done = subprocess.run(
            [str(published.python), "-c", script, *words],
            cwd=folder / "code",
            env=os.environ | {"HOME": str(folder / "home"), "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.live
@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("published")
def test_a_checkpoint_of_the_published_package(theirs, folder, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    weights = weights_told(theirs(TRAIN))
    (state,) = {path.parent for path in folder.rglob("state_dict.pth") if "code" not in path.parts[-2:]}
    loaded = pytorch.load_trial_from_checkpoint_path(str(state))
    assert torch.equal(flat(loaded.model), weights)
    assert loaded.optimizer.param_groups[0]["lr"] == 0.01

    # And training goes on where theirs ended.
    monkeypatch.syspath_prepend(str(state / "code"))
    kind = importlib.import_module("their_def").Trial
    ours = folder / "data" / "determined" / state.name
    if ours != state:
        shutil.copytree(state, ours)
    with pytorch.init(hparams={"rate": 0.01}, enable_tensorboard_logging=False) as context:
        trial = kind(context)
        trainer = pytorch.Trainer(trial, context)
        trainer.fit(max_length=Batch(6), latest_checkpoint=state.name, checkpoint_policy="none")
    assert trial.batches == [4, 5]
    sys.modules.pop("their_def")


def flat(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.live
@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("published")
def test_our_checkpoints_load_with_the_published_package(theirs, folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder / "code"))
    kind = importlib.import_module("their_def").Trial
    trial, (uuid,) = fit(kind, hparams={"rate": 0.01}, exp_conf={"searcher": {"metric": "loss"}})
    sys.modules.pop("their_def")
    (path,) = (folder / "data").rglob(uuid)
    assert torch.equal(weights_told(theirs(LOAD, str(path))), flat(trial.model))
