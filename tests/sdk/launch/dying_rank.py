"""One rank of a script that runs off a cluster; it kills itself at a step. Started by `test_killed_ranks.py`.

`dying_rank.py KIND VICTIM STEP FOLDER`: rank VICTIM dies when it reaches STEP, and leaves the time in FOLDER.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

# The launcher needs to know the node; the script trains as it would off a cluster.
os.environ.pop("DET_INFO_DIR", None)

import determined as det

KIND, VICTIM, STEP, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4])
RANK = int(os.environ["RANK"])
BATCHES = 3


def may_die(step):
    if (RANK, step) != (VICTIM, STEP):
        return
    # As the processes of a data loader do, this one outlives the rank, and keeps its output open.
    subprocess.Popen(["sleep", "20"])
    (FOLDER / "new").write_text(str(time.monotonic()))
    (FOLDER / "new").rename(FOLDER / "died")
    os.kill(os.getpid(), signal.SIGKILL)


def group():
    may_die("before it joins")
    if "USE_DEEPSPEED" in os.environ:
        return det.core.DistributedContext.from_deepspeed()
    return det.core.DistributedContext.from_torch_distributed()


def core_api():
    with det.core.init(distributed=group()) as core:
        may_die("once it has joined")
        core.distributed.allgather(RANK)
        for op in core.searcher.operations():
            may_die("when it has an operation")
            for step in range(1, BATCHES + 1):
                if RANK == 0:
                    core.train.report_training_metrics(step, {"x": 1.0})
                may_die(f"in step {step}")
                core.distributed.allgather_local(core.preempt.should_preempt())
            with core.checkpoint.store_path({"steps_completed": BATCHES}, shard=True) as (path, _):
                (path / f"{RANK}.txt").write_text("whole")
                may_die("while it saves")
            if RANK == 0:
                core.train.report_validation_metrics(BATCHES, {"x": 1.0})
                op.report_completed(1.0)
        may_die("when all is trained")
        core.distributed.broadcast_local("over")


def trainer():
    import torch

    from determined import pytorch

    class Dying(pytorch.PyTorchCallback):
        def on_checkpoint_load_start(self, checkpoint):
            may_die("while it loads")

        def on_checkpoint_upload_end(self, uuid):
            may_die("when it has saved")

        def on_trial_shutdown(self):
            may_die("when all is trained")

    class Line(pytorch.PyTorchTrial):
        def __init__(self, context):
            may_die("while it builds the model")
            self.context = context
            self.model = context.wrap_model(torch.nn.Linear(1, 1))
            self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 0.01))

        def loss(self, batch):
            return ((self.model(batch) - batch) ** 2).mean()

        def train_batch(self, batch, epoch_idx, batch_idx):
            may_die(f"in step {batch_idx + 1}")
            loss = self.loss(batch)
            self.context.backward(loss)
            self.context.step_optimizer(self.optimizer)
            return {"loss": loss}

        def evaluate_batch(self, batch):
            may_die("while it validates")
            return {"x": self.loss(batch)}

        def build_training_data_loader(self):
            return pytorch.DataLoader(torch.ones(16, 1), 2)

        build_validation_data_loader = build_training_data_loader

        def build_callbacks(self):
            return {"dying": Dying()}

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    with pytorch.init(distributed=group(), enable_tensorboard_logging=False) as context:
        may_die("once it has joined")
        fit = pytorch.Trainer(Line(context), context).fit
        fit(max_length=pytorch.Batch(BATCHES), checkpoint_period=pytorch.Batch(2))


def deaf():
    """Ranks that do not end by themselves, nor when they are asked to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (FOLDER / f"deaf-{RANK}").touch()
    while len(list(FOLDER.glob("deaf-*"))) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.05)
    may_die("when nobody listens")
    time.sleep(600)


if __name__ == "__main__":
    os.chdir(FOLDER)
    {"core": core_api, "trainer": trainer, "deaf": deaf}[KIND]()
