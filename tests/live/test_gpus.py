"""Trials on a real GPU through a real local cluster. Skipped where the host has none."""

import json
import math
import shutil
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import wait_for
from worker.slots import gpus
from worker.utilisation.gpus import load_nvml

GPUS = gpus()
PLAN = {"gpu": True, "settings": {"STEADFAST_WORKER_SAMPLE_S": "1"}}
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not GPUS, reason="there is no NVIDIA GPU, or no driver for it"),
]
EXAMPLES = Path(__file__).parents[2] / "examples"
GIB = 2**30

LOOK = """
import json, os, sys, torch, determined as det
info = det.get_cluster_info()
with det.core.init() as core:
    print("seen", json.dumps({
        "devices": torch.cuda.device_count(), "uuids": info.gpu_uuids,
        "visible": os.environ["CUDA_VISIBLE_DEVICES"],
        "device": str(torch.cuda.get_device_properties(0).uuid),
    }))
    value = torch.ones(1000, device="cuda").sum().item()
    core.train.report_validation_metrics(steps_completed=1, metrics={"loss": value})
"""

TRAINING = """
import torch, determined as det
from torch import nn
torch.manual_seed(det.get_cluster_info().trial.trial_seed)
with det.core.init() as core:
    model = nn.Sequential(nn.Linear(32, 64), nn.Dropout(0.3), nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step in range(1, 51):
        loss = (model(torch.randn(256, 32, device="cuda")) - 1).square().mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        core.train.report_training_metrics(steps_completed=step, metrics={"loss": loss.item()})
    core.train.report_validation_metrics(steps_completed=50, metrics={"loss": loss.item()})
"""

BUSY = """
import time, torch, determined as det
with det.core.init() as core:
    held = torch.zeros(GIB_HELD * 2**28, device="cuda")
    a = torch.randn(2048, 2048, device="cuda")
    print("busy", flush=True)
    while not core.preempt.should_preempt():
        for _ in range(50):
            a = (a @ a).tanh()
        torch.cuda.synchronize()
"""

TOO_LARGE = """
import torch, determined as det
with det.core.init() as core:
    held = [torch.zeros(2**32, device="cuda") for _ in range(1000)]
"""

PAUSED = """
import torch, determined as det
from torch import nn
from determined import pytorch
from torch.utils.data import TensorDataset

class Slow(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5), nn.Linear(16, 1)))
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), 1e-2))

    def build_training_data_loader(self):
        records = torch.arange(256.0).view(64, 4) / 256
        return pytorch.DataLoader(TensorDataset(records), 4, shuffle=True, pin_memory=True)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        assert batch[0].is_cuda
        loss = (self.model(batch[0]) - 1).square().mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        torch.cuda._sleep(SLEEP_CYCLES)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"validation_loss": (self.model(batch[0]) - 1).square().mean()}

if __name__ == "__main__":
    with pytorch.init() as context:
        pytorch.Trainer(Slow(context), context).fit(
            max_length=pytorch.Batch(200), reporting_period=pytorch.Batch(10),
            validation_period=pytorch.Batch(100), checkpoint_period=pytorch.Batch(50),
            latest_checkpoint=det.get_cluster_info().latest_checkpoint,
        )
"""


@pytest.fixture
def cluster(module_cluster):
    yield module_cluster
    module_cluster.end_all()


def metrics(cluster, trial, group):
    """Steps and averages of all reports of a group."""
    rows = cluster.stream(f"trials/metrics/{group}_metrics", trialIds=trial)
    return [(m["totalBatches"], m["metrics"]["avgMetrics"]) for page in rows for m in page["metrics"]]


def completed(cluster, script, **config):
    """Run a script to its end; returns its trial."""
    id = cluster.submit(script, **config)
    ended = cluster.wait_for_end(id, 300)
    trial = cluster.first_trial(id)
    assert ended["state"] == "STATE_COMPLETED", "\n".join(cluster.logs(trial)[-30:])
    return trial


def printed_by(cluster, trial):
    (line,) = [line for line in cluster.logs(trial) if line.startswith("seen ")]
    return json.loads(line.removeprefix("seen "))


def memory_used(slot):
    nvml = load_nvml()
    return nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByUUID(slot.uuid)).used


def test_each_gpu_is_a_slot(cluster):
    (agent,) = cluster.get("agents")["agents"]
    devices = [slot["device"] for slot in agent["slots"].values()]
    assert [(d["type"], d["uuid"], d["brand"]) for d in devices] == [
        ("TYPE_CUDA", gpu.uuid, gpu.brand) for gpu in GPUS
    ]
    listed = cluster.det("slot", "list").stdout
    assert "cuda" in listed
    assert GPUS[0].brand in listed


def test_a_trial_sees_the_gpu_it_holds_and_no_other(cluster):
    observed = printed_by(cluster, completed(cluster, LOOK))
    assert observed["devices"] == 1
    (uuid,) = observed["uuids"]
    assert observed["visible"] == str([gpu.uuid for gpu in GPUS].index(uuid))
    assert observed["device"] in uuid


def test_a_task_without_slots_sees_no_gpu(cluster):
    code = "import torch; print('devices', torch.cuda.device_count())"
    done = cluster.det("command", "run", "--config", "resources.slots=0", f'python3 -c "{code}"')
    assert "devices 0" in done.stdout


def test_a_warm_start_gives_the_same_numbers_on_a_gpu(cluster):
    fixed = {"reproducibility": {"experiment_seed": 7}}
    cold = completed(cluster, TRAINING, environment={"warm": False}, **fixed)
    # The template starts with the first run that may be warm; a later one uses it.
    warm = [completed(cluster, TRAINING, environment={"warm": True}, **fixed) for _ in range(3)]
    started = [
        json.loads(line)
        for path in cluster.home.folder("logs").glob("*.log")
        for line in path.read_text().splitlines()
        if '"run.started"' in line
    ]
    assert started[-1]["warm"], started
    expected = metrics(cluster, cold, "training")
    assert len(expected) == 50
    for trial in warm:
        assert metrics(cluster, trial, "training") == expected


def test_a_trial_paused_on_a_gpu_goes_on_exactly(cluster):
    def run(sleep_cycles, pause):
        script = PAUSED.replace("SLEEP_CYCLES", str(sleep_cycles))
        id = cluster.submit(
            script,
            reproducibility={"experiment_seed": 3},
            searcher={"name": "single", "metric": "validation_loss", "max_length": {"batches": 200}},
        )
        trial = cluster.first_trial(id)
        if pause:
            wait_for(lambda: len(metrics(cluster, trial, "training")) >= 3, 120, "30 batches")
            cluster.tell(id, "pause")
            wait_for(lambda: cluster.trials(id)[0]["state"] == "STATE_PAUSED", 60, "the pause")
            assert len(metrics(cluster, trial, "training")) < 20
            cluster.tell(id, "activate")
        assert cluster.wait_for_end(id, 300)["state"] == "STATE_COMPLETED", cluster.logs(trial)
        return metrics(cluster, trial, "validation")

    assert run(50_000_000, True) == run(0, False)


def test_the_use_of_a_gpu_is_reported(cluster):
    id = cluster.submit(BUSY.replace("GIB_HELD", "3"))
    trial = cluster.first_trial(id)

    def most(name):
        groups = cluster.get(f"trials/{trial}")["trial"].get("summaryMetrics") or {}
        return groups.get("profile.process", {}).get(name, {}).get("max", math.nan)

    (agent,) = cluster.get("agents")["agents"]
    wait_for(lambda: most(f"gpu_percent.{agent['id']}.0") > 50, 120, "a busy GPU")
    wait_for(lambda: most(f"gpu_memory_gb.{agent['id']}.0") > 3, 60, "3 GiB in use")
    cluster.tell(id, "kill")
    assert cluster.wait_for_end(id)["state"] == "STATE_CANCELED"


def test_a_killed_trial_leaves_no_memory_in_use(cluster):
    before = memory_used(GPUS[0])
    id = cluster.submit(BUSY.replace("GIB_HELD", "4"))
    trial = cluster.first_trial(id)
    wait_for(lambda: "busy" in cluster.logs(trial), 120, "the script to hold memory")
    assert memory_used(GPUS[0]) > before + 4 * GIB
    cluster.tell(id, "kill")
    cluster.wait_for_end(id)
    # The slot is free only when the processes are gone, and their memory with them.
    assert memory_used(GPUS[0]) < before + GIB / 2


def test_running_out_of_memory_is_named_as_the_cause(cluster):
    id = cluster.submit(TOO_LARGE)
    assert cluster.wait_for_end(id, 300)["state"] == "STATE_ERROR"
    trial = cluster.first_trial(id)
    output = cluster.det("trial", "describe", trial).stdout + cluster.det("why", "trial", trial).stdout
    assert "OutOfMemoryError" in output, output
    # The GPU is not held by what failed.
    completed(cluster, LOOK)


def test_a_rank_on_a_gpu_talks_nccl(cluster):
    script = """
import torch, determined as det
from determined import pytorch
torch.cuda.set_device(0)
torch.distributed.init_process_group("nccl")
group = det.core.DistributedContext.from_torch_distributed()
with det.core.init(distributed=group) as core:
    value = torch.full((4,), 2.0, device="cuda")
    torch.distributed.all_reduce(value)
    print("sum", value.sum().item(), torch.distributed.get_backend())
torch.distributed.destroy_process_group()
"""
    launched = "python3 -m determined.launch.torch_distributed python3 run.py"
    trial = completed(cluster, script, entrypoint=launched)
    assert any("sum 8.0 nccl" in line for line in cluster.logs(trial))


@pytest.mark.parametrize(
    ("name", "config", "needed"),
    [
        ("pytorch_mnist", "const.yaml", ("sklearn",)),
        ("lightning_digits", "const.yaml", ("lightning", "sklearn")),
        ("transformers_digits", "const.yaml", ("transformers", "accelerate", "sklearn")),
        ("keras_digits", "const.yaml", ("keras", "sklearn")),
        ("deepspeed_digits", "const.yaml", ("deepspeed", "sklearn")),
    ],
)
def test_the_examples_train_on_a_gpu(cluster, tmp_path, name, config, needed):
    for module in needed:
        pytest.importorskip(module, reason=f"{module} is not installed")
    id = cluster.create(config, shutil.copytree(EXAMPLES / name, tmp_path / name))
    ended = cluster.wait_for_end(id, 500)
    assert ended["state"] == "STATE_COMPLETED", "\n".join(cluster.logs(cluster.first_trial(id))[-60:])
    assert cluster.trials(id)[0]["bestValidation"]
